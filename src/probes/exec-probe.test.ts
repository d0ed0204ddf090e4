import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs, KubelingError } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { type CommandRunner, ExecProbes } from './exec-probe.ts';
import type { ExecAction, ProbeRequest, ProbeResponse } from './probe-request.ts';

const question: ProbeRequest<ExecAction> = {
  type: 'liveness',
  podUid: podUid('uid-1'),
  podName: 'web',
  podNamespace: 'default',
  container: 'main',
  containerId: 'a',
  action: { kind: 'exec', command: ['cat', '/ok'] },
  timeoutMs: 2_000,
};
const { signal } = new AbortController();

function aRunner(execSync: CommandRunner['execSync']) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const probes = new ExecProbes({ clock, logger, runner: { execSync } });
  return { clock, records, probes };
}

describe('exec probe', () => {
  it('succeeds with exit code 0, fails with any other code, and truncates the output', async () => {
    for (const exitCode of [0, 1, 127]) {
      const requests: unknown[] = [];
      const { probes } = aRunner(async (request) => {
        requests.push(request);
        return { exitCode, output: Buffer.from('x'.repeat(20_000)) };
      });
      const response = await probes.probe(question, signal);
      assert.deepEqual(response, { is: exitCode === 0 ? 'success' : 'failure', output: 'x'.repeat(10_240) });
      assert.deepEqual(requests, [{ containerId: 'a', command: ['cat', '/ok'], timeoutSeconds: 2 }]);
    }
  });

  it("fails when the exec probe's timeout has passed", async () => {
    const { probes } = aRunner(async () => {
      throw new KubelingError('CRI_EXEC_TIMEOUT', 'command timed out: deadline');
    });
    const output = 'command timed out: "cat" timed out after 2s';
    assert.deepEqual(await probes.probe(question, signal), { is: 'failure', output });
  });

  it('rejects when the probe command cannot be run', async () => {
    const { probes } = aRunner(async () => {
      throw new KubelingError('CRI_NOT_FOUND', 'no such container');
    });
    await assert.rejects(probes.probe(question, signal), { code: 'CRI_NOT_FOUND' });
    assert.equal(probes.size, 0);
  });

  it('fails five seconds after the timeout when the runtime does not respond, and starts no second command', async () => {
    const ends: (() => void)[] = [];
    const { probes, clock, records } = aRunner(
      () =>
        new Promise((resolve) => {
          ends.push(() => resolve({ exitCode: 0, output: Buffer.alloc(0) }));
        }),
    );
    const responses: (readonly [number, ProbeResponse])[] = [];
    const ask = () =>
      probes.probe(question, signal).then((response) => responses.push([clock.monotonicMs(), response]));
    const first = ask();
    await clock.advance(10_000);
    await first;
    await ask();
    assert.deepEqual(
      responses.map(([at, { is, output }]) => [at, is, output]),
      [
        [7_000, 'failure', 'command timed out: "cat" timed out after 2s'],
        [10_000, 'failure', 'command timed out: "cat" of an earlier probe still runs'],
      ],
    );
    assert.deepEqual([ends.length, probes.size], [1, 1]);
    assert.equal(records.toArray().filter(({ message }) => /did not end|still runs/.test(message)).length, 2);
    ends[0]?.();
    await clock.advance(0);
    assert.equal(probes.size, 0);
    const third = ask();
    await clock.advance(0);
    ends[1]?.();
    await clock.advance(0);
    await third;
    assert.equal(responses[2]?.[1].is, 'success');
  });

  it('cancels an ExecSync call half a minute after the timeout of the command if the runtime never responds, and then starts commands again', async () => {
    let calls = 0;
    const { probes, clock } = aRunner((_request, inner) => {
      calls++;
      return new Promise((_resolve, reject) => inner.addEventListener('abort', () => reject(inner.reason)));
    });
    const first = probes.probe(question, signal);
    await clock.advance(31_000);
    assert.equal((await first).is, 'failure');
    assert.match((await probes.probe(question, signal)).output, /still runs/);
    await clock.advance(2_000);
    assert.deepEqual([probes.size, clock.pendingTimers], [0, 0]);
    const next = probes.probe(question, signal);
    await clock.advance(40_000);
    assert.deepEqual([(await next).is, calls], ['failure', 2]);
  });

  it('cancels the command together with its probe', async () => {
    const controller = new AbortController();
    const { probes } = aRunner(
      (_request, inner) =>
        new Promise((_resolve, reject) => inner.addEventListener('abort', () => reject(inner.reason))),
    );
    const requested = probes.probe(question, controller.signal);
    controller.abort(new KubelingError('CANCELLED', 'over'));
    await assert.rejects(requested, { code: 'CANCELLED' });
    assert.equal(probes.size, 0);
  });
});
