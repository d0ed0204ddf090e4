import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pauseImageName } from '../../src/containerd/index.ts';
import { InProcessNode } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import { allowRegistry, Registry } from '../registry.ts';
import { skipReason } from './containerd-fixture.ts';

const { signal } = new AbortController();
const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done';

describe('garbage collection of unused images', { timeout: 600_000, skip: skipReason() }, () => {
  let directory: string;
  let registry: Registry;
  let node: InProcessNode;
  let images: readonly string[];
  let usedPercent = 50;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'klg-image-gc-'));
    registry = await Registry.open({ directory });
    images = [
      await registry.push('one:1', 1_000_000),
      await registry.push('two:1', 2_000_000),
      await registry.push('three:1', 3_000_000),
    ];
    node = await InProcessNode.open({
      settings: () => ({ imageGc: { highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs: 0 } }),
      aroundDeps: (deps) => {
        const diskSpace = async () => ({ capacityBytes: 1e8, availableBytes: (100 - usedPercent) * 1e6 });
        return { ...deps, machine: { ...deps.machine, diskSpace } };
      },
    });
    await allowRegistry(node.runtime.containerd.layout.registryConfig, registry.host, { scheme: 'http' });
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });

  const gc = () => {
    const { imageGc } = node.kubelet.runtime;
    assert.ok(imageGc);
    return imageGc;
  };
  const isPresent = async (image: string) =>
    (await node.runtime.cri.imageStatus({ image: { image } }, signal)).image !== undefined;
  const pull = (image: string) => node.runtime.cri.pullImage({ image: { image } }, signal);
  const podOf = (image: string) => ({ containers: { main: { image, script: stays } } });

  it('removes unused images when the disk is too full and keeps images in use and the sandbox image', async () => {
    const [one = '', two = '', three = ''] = images;
    for (const image of images) await pull(image);
    await node.put({ user: podOf(two) });
    await node.podIs('user', 'running', ({ phase }) => phase === 'Running');
    await gc().collect(signal);
    assert.deepEqual(await Promise.all(images.map(isPresent)), [true, true, true], 'space is freed');
    usedPercent = 99;
    await assert.rejects(gc().collect(signal), /Insufficient free disk space/);
    assert.deepEqual(await Promise.all([one, two, three, pauseImageName].map(isPresent)), [
      false,
      true,
      false,
      true,
    ]);
    assert.ok(
      node.kubelet.state.node
        .story()
        .entries.some((entry) => 'reason' in entry && entry.reason === 'FreeDiskSpaceFailed'),
    );
    await node.clear();
  });

  it('keeps an unused image as soon as a pod starts to use it', async () => {
    const controller = new AbortController();
    let rounds = 0;
    const reclaiming = (async () => {
      while (!controller.signal.aborted) {
        await gc().deleteUnusedImages(signal);
        rounds++;
      }
    })();
    for (let round = 0; round < 4; round++) {
      const names = images.map((_, index) => `p${round}-${index}`);
      await node.put(Object.fromEntries(names.map((name, index) => [name, podOf(images[index] ?? '')])));
      for (const name of names) {
        await node.podIs(name, 'running', ({ phase }) => phase === 'Running');
        const failed = node.events(name).filter(({ reason }) => reason === 'Failed');
        assert.deepEqual(failed, [], node.told(name));
      }
      await node.take(...names);
      await eventually('the pods to be deleted', async () =>
        names.every((name) => node.pod(name) === undefined) ? true : undefined,
      );
    }
    controller.abort(new Error('enough'));
    await reclaiming;
    assert.ok(rounds > 4, `${rounds}`);
  });

  it('removes an image that was unused for longer than the maximum age', async () => {
    await node.clear();
    usedPercent = 50;
    const [one = ''] = images;
    await pull(one);
    await node.stop();
    await node.start({ imageGc: { highPercent: 100, lowPercent: 80, minAgeMs: 0, maxAgeMs: 1_000 } });
    await eventually('the image to exceed the maximum age', async () => {
      await gc().collect(signal);
      return (await isPresent(one)) ? undefined : true;
    });
  });
});
