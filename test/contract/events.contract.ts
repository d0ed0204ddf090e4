import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind } from '../../src/lib/index.ts';
import { exited, Pods, settled } from './pods.ts';
import type { Part } from './suite.ts';

export const eventContract: Part = (get) => {
  test('containerd publishes each start, exit and removal of sandboxes and containers as an event', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'events-containerd');
    const controller = new AbortController();
    const observed = new Map<string, string[]>();
    const reading = (async () => {
      for await (const event of backend.cri.containerdEvents(controller.signal)) {
        assert.ok(event.atMs > 0);
        observed.set(event.containerId, [...(observed.get(event.containerId) ?? []), event.topic]);
      }
    })();
    const topicsOf = (id: string, ...topics: string[]) =>
      backend.until(`${topics} of ${id}`, async () =>
        topics.every((topic) => observed.get(id)?.includes(topic)) ? true : undefined,
      );
    // A new subscription delivers nothing until it is established, so sandboxes are created until
    // an event arrives.
    await backend.until('the subscription', async () => {
      const pod = await pods.sandbox();
      return observed.has(pod.id) ? true : undefined;
    });
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'exit 0' });
    await exited(backend, containerId);
    await topicsOf(pod.id, '/tasks/start');
    await topicsOf(containerId, '/containers/create', '/tasks/start', '/tasks/exit');
    await backend.cri.removeContainer({ containerId }, controller.signal);
    await topicsOf(containerId, '/containers/delete');
    controller.abort(new Error('the test has received enough events'));
    await assert.rejects(settled(backend, reading), (error) => isKind(error, 'Cancelled'));
  });

  test('a published event is delivered even if its container does not exist, so a client can test whether events arrive', async () => {
    const backend = get();
    const controller = new AbortController();
    const heard: string[] = [];
    const reading = (async () => {
      for await (const event of backend.cri.containerdEvents(controller.signal))
        heard.push(event.containerId);
    })();
    await backend.until('the provoked event', async () => {
      await backend.cri.publishContainerdEvent('no-such-container', controller.signal);
      return heard.includes('no-such-container') ? true : undefined;
    });
    controller.abort(new Error('the test has received enough events'));
    await assert.rejects(settled(backend, reading), (error) => isKind(error, 'Cancelled'));
  });

  test("the exit of a command run in a container is not published as the container's exit", async () => {
    const backend = get();
    await using pods = new Pods(backend, 'events-exec');
    const controller = new AbortController();
    const topics: string[] = [];
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000' });
    const reading = (async () => {
      for await (const event of backend.cri.containerdEvents(controller.signal)) topics.push(event.topic);
    })();
    await backend.until('the subscription', async () => {
      await pods.sandbox();
      return topics.length > 0 ? true : undefined;
    });
    await backend.cri.execSync({ containerId, cmd: ['true'], timeout: 30n }, controller.signal);
    await pods.sandbox();
    assert.ok(!topics.includes('/tasks/exit'));
    controller.abort(new Error('the test has received enough events'));
    await assert.rejects(settled(backend, reading), (error) => isKind(error, 'Cancelled'));
  });

  test('CRI events are supported from containerd 1.7 on; 1.6 returns an error', async () => {
    const backend = get();
    const controller = new AbortController();
    const read = async () => {
      const kinds: string[] = [];
      for await (const event of backend.cri.getContainerEvents({}, controller.signal)) {
        kinds.push(event.containerEventType);
        if (event.containerEventType === 'CONTAINER_STOPPED_EVENT') break;
      }
      return kinds;
    };
    if (backend.flavour === 'containerd-1.6') {
      await assert.rejects(settled(backend, read()), (error) => isKind(error, 'Unsupported'));
      return;
    }
    await using pods = new Pods(backend, 'events-cri');
    let kinds: readonly string[] | undefined;
    const reading = read().then((seen) => {
      kinds = seen;
    });
    await backend.until('a stop to be told', async () => {
      await exited(backend, await (await pods.sandbox()).run({ script: 'exit 0' }));
      return kinds;
    });
    await settled(backend, reading);
    assert.ok(kinds?.includes('CONTAINER_STARTED_EVENT'));
  });
};
