import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nodeUser } from '../../../test/fakes/api-users.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { randomApiFaults, SimulatedApi } from '../../../test/simulator/api/index.ts';
import { apiResources } from '../../api/index.ts';
import type { Node } from '../../kinds/index.ts';
import { collectLogs, pick, randomInt, seededRandom } from '../../lib/index.ts';
import { annotations, fullNameOf, isMirrorPod, type Pod, PodManager, podUid } from '../../pods/index.ts';
import { MirrorPods } from './mirror-pods.ts';

const nodeName = 'n1';
const rates = {
  delay: 0.1,
  refuse: 0.1,
  conflict: 0.05,
  unreachable: 0.05,
  lostAnswer: 0.1,
  lateEffect: 0.05,
};

function aStaticPod(name: string, hash: string): Pod {
  return aPod({
    metadata: {
      name,
      uid: podUid(hash),
      annotations: { [annotations.hash]: hash, [annotations.source]: 'file' },
    },
    spec: { nodeName },
  });
}

function world(seed: number) {
  const random = seededRandom(seed);
  const clock = new VirtualClock({ random });
  const { logger } = collectLogs(clock);
  const api = new SimulatedApi({ clock, random });
  const pods = new PodManager();
  const seen = new Map<string, Pod>();
  const versions = new Map<string, number>();
  const mirrors = new MirrorPods({
    clock,
    random,
    logger,
    api: api.client(nodeUser(nodeName), { deadlineMs: 5_000 }),
    node: () => api.object({ resource: apiResources.nodes, name: nodeName }) as Node | undefined,
    pairOf: (name) => ({
      pod: pods.getPodByFullName(name),
      mirror: [...seen.values()].find((one) => fullNameOf(one) === name),
    }),
    isEnding: () => false,
  });
  api.onChange(({ type, object, version }) => {
    if (object.kind !== 'Pod') return;
    const pod = object as unknown as Pod;
    clock.timer(random.next() * 50, () => {
      const { name } = pod.metadata;
      // The fake watch delivers events in order, so an event with an old version is dropped.
      if (version < (versions.get(name) ?? 0)) return;
      versions.set(name, version);
      if (type === 'DELETED') seen.delete(name);
      else if (isMirrorPod(pod)) seen.set(name, pod);
      mirrors.reconcile(fullNameOf(pod));
    });
  });
  return { random, clock, api, pods, mirrors };
}

describe('MirrorPods with an API server that fails at random and enforces the node restriction', () => {
  for (let seed = 1; seed <= 8; seed++) {
    it(`converges to one mirror pod with the current hash for each static pod, seed ${seed}`, async (t) => {
      const { random, clock, api, pods, mirrors } = world(seed);
      const stopping = new AbortController();
      t.after(() => stopping.abort(new Error('stopped')));
      api.put(apiResources.nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } });
      mirrors.run(stopping.signal).catch(() => {});
      api.setFaults(randomApiFaults({ random, rates }));
      const wanted = new Map<string, Pod>();
      for (let step = 0; step < 60; step++) {
        const name = `web-${randomInt(random, 3)}`;
        const before = wanted.get(name);
        const act = pick(random, ['edit', 'edit', 'remove', 'delete-mirror']);
        if (act === 'delete-mirror') {
          const at = { resource: apiResources.pods, namespace: 'default', name };
          if (api.object(at) !== undefined) api.deletePod('default', name, pick(random, [0, 30]));
        } else {
          if (before !== undefined) pods.removePod(before);
          wanted.delete(name);
          const after = aStaticPod(name, `h${step}`);
          if (act === 'edit') {
            wanted.set(name, after);
            pods.addPod(after);
          }
          mirrors.reconcile(fullNameOf(after));
        }
        await clock.advance(randomInt(random, 1_000));
      }
      api.setFaults(undefined);
      await clock.advance(60_000);
      const shown = api.objects(apiResources.pods).map(({ metadata }) => {
        const { name, annotations: written, ownerReferences } = metadata as object as Pod['metadata'];
        assert.equal(ownerReferences?.length, 1);
        return [name, written?.[annotations.mirror]];
      });
      const expected = [...wanted.values()].map(({ metadata }) => [metadata.name, metadata.uid as string]);
      assert.deepEqual(shown, expected.toSorted());
      assert.equal(mirrors.pending, 0);
    });
  }
});
