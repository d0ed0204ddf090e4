import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind } from '../../src/lib/index.ts';
import { Pods, sandboxStatus, signal, status } from './pods.ts';
import type { Part } from './suite.ts';

export const restartContract: Part = (get) => {
  test('a killed runtime is unavailable, and has its previous state after a restart', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'restart');
    const pod = await pods.sandbox();
    const running = await pod.run({ script: 'sleep 1000', name: 'running' });
    const created = await pod.create({ script: 'exit 0', name: 'created' });
    const before = await status(backend, running);
    let streamError: unknown;
    (async () => {
      for await (const _ of backend.cri.containerdEvents(signal));
    })().catch((error) => {
      streamError = error;
    });

    await backend.kill();
    await backend.until('the stream to break', async () => (streamError === undefined ? undefined : true));
    assert.ok(isKind(streamError, 'Unavailable'), String(streamError));
    await assert.rejects(backend.cri.version({}, signal), (error) => isKind(error, 'Unavailable'));
    await backend.revive();

    await backend.until('the runtime to answer the same client', async () => {
      try {
        return await backend.cri.version({}, signal);
      } catch (error) {
        assert.ok(isKind(error, 'Unavailable'), String(error));
        return undefined;
      }
    });
    assert.deepEqual(await status(backend, running), before);
    assert.equal((await status(backend, created)).state, 'CONTAINER_CREATED');
    assert.equal((await sandboxStatus(backend, pod.id)).state, 'SANDBOX_READY');
    await backend.cri.stopContainer({ containerId: running, timeout: 0n }, signal);
    assert.equal((await status(backend, running)).exitCode, 137);
  });

  test('an exit during the downtime of the runtime is reported after its restart', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'restart-exit');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1; exit 9' });
    await backend.kill();
    await backend.revive();
    const ended = await backend.until('the exit', async () => {
      try {
        const observed = await status(backend, containerId);
        return observed.state === 'CONTAINER_EXITED' ? observed : undefined;
      } catch (error) {
        assert.ok(isKind(error, 'Unavailable'), String(error));
        return undefined;
      }
    });
    assert.equal(ended.exitCode, 9);
  });
};
