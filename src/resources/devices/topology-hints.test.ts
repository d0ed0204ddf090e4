import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { container, DeviceRig, gadget, podOf } from '../../../test/fakes/device-rig.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { TopologyHints } from '../topology/index.ts';

const four = [0, 0, 1, 1].map((node, index) => ({ id: `d${index}`, numaNodes: [node] }));

function written(hints: TopologyHints | undefined): readonly string[] | undefined {
  return hints
    ?.get(gadget)
    ?.map(({ numaNodes = [], preferred }) => `${numaNodes.join('+')}${preferred ? '!' : ''}`);
}

describe('topology hints of devices', () => {
  it('hints are all sets of NUMA nodes with enough devices; the smallest sets that could satisfy the request on an empty machine are preferred', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, four);
    const hints = (count: number) =>
      written(harness.manager.getTopologyHints(podOf('p', count), container('main', count)));
    assert.deepEqual(hints(1), ['0!', '1!', '0+1']);
    assert.deepEqual(hints(3), ['0+1!']);
    assert.deepEqual(hints(5), []);
    await harness.admit(podOf('other', 1), { numaNodes: [0], preferred: true });
    // One NUMA node would be sufficient on an empty machine, so two nodes are not preferred.
    assert.deepEqual(hints(2), ['1!', '0+1']);
  });

  it('gives no hints without a request, and unrestricted hints for devices without NUMA nodes', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, [{ id: 'a' }]);
    const pod = podOf('p', 1);
    assert.deepEqual(
      [...(harness.manager.getTopologyHints(pod, container('main', 1)) ?? [])],
      [[gadget, undefined]],
    );
    assert.equal(harness.manager.getTopologyHints(pod, { name: 'main' }), undefined);
  });

  it('hints match the NUMA nodes of the devices that a container already has', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, four);
    const pod = podOf('p', 1);
    await harness.admit(pod, { numaNodes: [1], preferred: true });
    assert.deepEqual(written(harness.manager.getTopologyHints(pod, container('main', 1))), ['1!', '0+1']);
    assert.deepEqual(written(harness.manager.getTopologyHints(pod, container('main', 2))), []);
    assert.deepEqual(written(harness.manager.getPodTopologyHints(pod)), ['1!', '0+1']);
  });

  it('hints include the reusable devices of init containers', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, four);
    const pod = aPod({
      spec: { initContainers: [container('init', 1)], containers: [container('main', 2)] },
    });
    await harness.admit(
      { ...pod, spec: { ...pod.spec, containers: [] } },
      { numaNodes: [1], preferred: true },
    );
    assert.deepEqual(written(harness.manager.getTopologyHints(pod, container('main', 2))), ['1!', '0+1']);
  });

  it('hints exclude NUMA nodes that the machine does not have', async () => {
    await using harness = new DeviceRig();
    harness.numaNodes = [0, 1];
    await harness.startWith(gadget, [{ id: 'a', numaNodes: [0, 7] }]);
    assert.deepEqual(written(harness.manager.getTopologyHints(podOf('p', 1), container('main', 1))), ['0!']);
  });
});
