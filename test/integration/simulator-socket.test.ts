import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCriClient, wireTransport } from '../../src/cri/index.ts';
import { isKind, realClock, systemRandom } from '../../src/lib/index.ts';
import {
  createSimulatedRuntime,
  realFiles,
  type SimulatedRuntimeOptions,
  scriptedFaults,
} from '../simulator/index.ts';

const limitMs = 60_000;
/** How long a call without a response may take; long enough for all other calls. */
const hangingMs = 3_000;

async function until(what: string, check: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`Timed out after ${limitMs} ms: still waiting for ${what}`);
    await sleep(5);
  }
}

/**
 * Starts a simulated runtime on a socket in a separate directory, and a CRI client connected to it.
 */
async function serve(options: Partial<SimulatedRuntimeOptions> = {}, requestTimeoutMs = limitMs) {
  const dir = mkdtempSync(join(tmpdir(), 'simulator-'));
  const clock = realClock();
  const random = systemRandom();
  const runtime = createSimulatedRuntime({
    clock,
    random,
    files: realFiles(),
    images: [{ reference: 'localhost/busybox:1', command: ['sh'] }],
    ...options,
  });
  const endpoint = join(dir, 'runtime.sock');
  const server = await runtime.serve(endpoint);
  const cri = createCriClient({
    clock,
    transport: wireTransport({ endpoint, clock, random }),
    requestTimeoutMs,
  });
  const signal = new AbortController().signal;
  const config = {
    metadata: { name: 'pod', namespace: 'ns', uid: 'uid', attempt: 0 },
    logDirectory: join(dir, 'logs'),
  };
  return {
    runtime,
    cri,
    signal,
    config,
    dir,
    async start(podSandboxId: string, script: string): Promise<string> {
      const container = {
        metadata: { name: 'main' },
        image: { image: 'localhost/busybox:1' },
        command: ['sh', '-c', script],
        logPath: 'main.log',
      };
      const request = { podSandboxId, sandboxConfig: config, config: container };
      const { containerId } = await cri.createContainer(request, signal);
      await cri.startContainer({ containerId }, signal);
      return containerId;
    },
    async [Symbol.asyncDispose]() {
      cri.close();
      runtime.close();
      await server.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

test('runs a pod over the socket, with its log on disk and its events', async () => {
  await using node = await serve();
  const { cri, signal } = node;
  await cri.checkVersion(signal);
  const controller = new AbortController();
  const topics: string[] = [];
  const reading = (async () => {
    for await (const event of cri.containerdEvents(controller.signal)) topics.push(event.topic);
  })();
  await until('the subscription', () => node.runtime.held().subscribers === 1);
  const { podSandboxId } = await cri.runPodSandbox({ config: node.config }, signal);
  const containerId = await node.start(podSandboxId, 'echo hello; sleep 0.1; exit 3');
  await until('the exit', async () => {
    const { status } = await cri.containerStatus({ containerId }, signal);
    return status?.state === 'CONTAINER_EXITED' && status.exitCode === 3;
  });
  assert.match(readFileSync(join(node.dir, 'logs', 'main.log'), 'utf8'), /^\S+Z stdout F hello\n$/);
  await until('the event', () => topics.includes('/tasks/exit'));
  await cri.removePodSandbox({ podSandboxId }, signal);
  controller.abort(new Error('the test has received enough events'));
  await assert.rejects(reading, (error) => isKind(error, 'Cancelled'));
  await until('the end of the stream', () => node.runtime.held().subscribers === 0);
  const { calls, sandboxes, containers } = node.runtime.held();
  assert.deepEqual([calls, sandboxes, containers], [0, 0, 0]);
});

test('over the socket, clients observe injected faults and restarts of the runtime in the same way as clients in the same process', async () => {
  const faults = scriptedFaults({
    calls: [
      {
        method: 'version',
        nth: 1,
        fault: { kind: 'error', code: 'NOT_FOUND', message: 'no “such” thing' },
      },
      { method: 'version', nth: 2, fault: { kind: 'hang' } },
      { method: 'runPodSandbox', nth: 1, fault: { kind: 'lost-reply', code: 'UNAVAILABLE' } },
    ],
  });
  await using node = await serve({ faults }, hangingMs);
  const { cri, signal, runtime } = node;
  await assert.rejects(cri.version({}, signal), /no “such” thing/);
  await assert.rejects(cri.version({}, signal), (error) => isKind(error, 'DeadlineExceeded'));
  await until('the server to notice', () => runtime.held().calls === 0);
  await assert.rejects(cri.runPodSandbox({ config: node.config }, signal), (error) =>
    isKind(error, 'Unavailable'),
  );
  const { items } = await cri.listPodSandbox({}, signal);
  assert.equal(items.length, 1);
  const containerId = await node.start(items[0]?.id ?? '', "trap '' TERM; sleep 1000");
  const stop = assert.rejects(cri.stopContainer({ containerId, timeout: 60n }, signal), (error) =>
    isKind(error, 'Unavailable'),
  );
  await until('the call to arrive', () => runtime.held().calls === 1);
  runtime.goDown({ state: 'kept' });
  await stop;
  await assert.rejects(cri.version({}, signal), (error) => isKind(error, 'Unavailable'));
  runtime.comeUp();
  const { status } = await cri.containerStatus({ containerId }, signal);
  assert.equal(status?.state, 'CONTAINER_RUNNING');
});

test('accepts responses up to 16 MiB and reports larger ones with a distinct error', async () => {
  await using node = await serve();
  const { cri, signal, config } = node;
  const annotations = { notes: 'x'.repeat(3 << 20) };
  for (let attempt = 0; attempt < 5; attempt++) {
    const metadata = { ...config.metadata, attempt };
    await cri.runPodSandbox({ config: { ...config, metadata, annotations } }, signal);
  }
  assert.equal((await cri.listPodSandbox({}, signal)).items.length, 5);
  await cri.runPodSandbox(
    { config: { ...config, metadata: { ...config.metadata, attempt: 5 }, annotations } },
    signal,
  );
  await assert.rejects(cri.listPodSandbox({}, signal), { code: 'CRI_TOO_LARGE' });
});
