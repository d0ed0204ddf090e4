import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exited, Pods, signal } from './pods.ts';
import type { Part } from './suite.ts';

const line = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([PF]) (.*)$/;

export const logContract: Part = (get) => {
  const read = async (path: string) => {
    const content = await get().readLog(path);
    return content
      .split('\n')
      .filter((text) => text !== '')
      .map((text) => {
        const [, time = '', stream, tag, message] = line.exec(text) ?? [];
        assert.ok(stream !== undefined, `${JSON.stringify(text)} is a log line`);
        return { time, stream, tag, message };
      });
  };

  test('each log line contains its time and stream', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'log-lines');
    const pod = await pods.sandbox();
    await exited(backend, await pod.run({ script: 'echo one; echo two >&2; echo; echo three' }));
    const lines = await backend.until('all lines', async () => {
      const observed = await read(pod.logPath());
      return observed.length === 4 ? observed : undefined;
    });
    const of = (stream: string) => lines.filter((item) => item.stream === stream).map((item) => item.message);
    assert.deepEqual(of('stdout'), ['one', '', 'three']);
    assert.deepEqual(of('stderr'), ['two']);
    assert.ok(lines.every((item) => item.tag === 'F' && !Number.isNaN(Date.parse(item.time))));
  });

  test('a last line without a newline is marked as partial', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'log-partial');
    const pod = await pods.sandbox();
    await exited(backend, await pod.run({ script: 'printf half' }));
    const lines = await backend.until('the line', async () => {
      const observed = await read(pod.logPath());
      return observed.length > 0 ? observed : undefined;
    });
    assert.deepEqual(
      lines.map(({ tag, message }) => [tag, message]),
      [['P', 'half']],
    );
  });

  test('reopening a renamed log creates a new file', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'log-reopen');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'while true; do echo tick; sleep 0.1; done' });
    const path = pod.logPath();
    await backend.until('a first line', async () => ((await read(path)).length > 0 ? true : undefined));
    await backend.renameLog(path, `${path}.old`);
    await backend.cri.reopenContainerLog({ containerId }, signal);
    await backend.until('a line in the new file', async () =>
      (await read(path)).length > 0 ? true : undefined,
    );
    assert.ok((await read(`${path}.old`)).length > 0);
  });

  test('only the log of a running container can be reopened', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'log-reopen-exited');
    const containerId = await (await pods.sandbox()).run({ script: 'exit 0' });
    await exited(backend, containerId);
    await assert.rejects(backend.cri.reopenContainerLog({ containerId }, signal), /not running/);
  });
};
