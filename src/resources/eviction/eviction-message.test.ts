import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { EvictionThreshold } from '../../config/index.ts';
import { parseQuantity } from '../../lib/index.ts';
import { evictionMessage } from './eviction-message.ts';
import type { PodResourceUsage } from './eviction-stats.ts';
import type { Observations } from './observations.ts';

const gibi = 1024 ** 3;
const threshold = (signal: EvictionThreshold['signal'], value: EvictionThreshold['value']) => ({
  signal,
  kind: 'hard' as const,
  value,
  gracePeriodMs: 0,
  minimumReclaim: undefined,
});
const memory = threshold('memory.available', { quantity: parseQuantity('100Mi') });
const observations: Observations = new Map([
  ['memory.available', { atMs: 0, available: 50 * 1024 ** 2, capacity: gibi }],
  ['nodefs.available', { atMs: 0, available: gibi, capacity: 20 * gibi }],
  ['nodefs.inodesFree', { atMs: 0, available: 1_500, capacity: 100_000 }],
]);
const pod = aPod({
  spec: {
    containers: [
      { name: 'big', resources: { requests: { memory: '10Mi', 'ephemeral-storage': '1Gi' } } },
      { name: 'small', resources: { requests: { memory: '1Gi' } } },
      { name: 'plain' },
    ],
    initContainers: [{ name: 'helper', restartPolicy: 'Always' }],
  },
});
const mebi = 1024 ** 2;
const container = (name: string, memoryBytes: number, bytes: number) => ({
  name,
  memoryBytes,
  rootfs: { bytes, inodes: 1 },
  logs: { bytes: mebi, inodes: 1 },
});
const measures: PodResourceUsage = {
  memoryBytes: 300 * mebi,
  processes: 3,
  containers: [
    container('big', 200 * mebi, 3 * gibi),
    container('small', 20 * mebi, 0),
    container('plain', 1_000, 0),
    container('helper', 2 * mebi, 0),
    container('debugger', 2 * mebi, 0),
  ],
  volumes: new Map(),
};

describe('evictionMessage', () => {
  it('an eviction message names the resource and the containers above their requests', () => {
    const story = evictionMessage({ resource: 'memory', pod, measures, acting: [memory], observations });
    assert.deepEqual(story, {
      message:
        'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
        'Container big was using 200Mi, request is 10Mi, has larger consumption of memory. ' +
        'Container plain was using 1k, request is 0, has larger consumption of memory. ' +
        'Container helper was using 2Mi, request is 0, has larger consumption of memory. ',
      annotations: {
        offending_containers: 'big,plain,helper',
        offending_containers_usage: '200Mi,1k,2Mi',
        starved_resource: 'memory',
      },
    });
  });

  it('an eviction message includes layers and logs for disks, and converts percentages to amounts', () => {
    const acting = [threshold('nodefs.available', { percent: 10 })];
    const { message } = evictionMessage({
      resource: 'ephemeral-storage',
      pod,
      measures,
      acting,
      observations,
    });
    assert.match(
      message,
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 2Gi, available: 1Gi\. Container big was using 3073Mi, request is 1Gi, /,
    );
  });

  it('an eviction message names no containers for inodes and PIDs', () => {
    const acting = [threshold('nodefs.inodesFree', { percent: 5 })];
    const story = evictionMessage({ resource: 'inodes', pod, measures, acting, observations });
    assert.deepEqual(story, {
      message: 'The node was low on resource: inodes. Threshold quantity: 5000, available: 1500. ',
      annotations: { offending_containers: '', offending_containers_usage: '', starved_resource: 'inodes' },
    });
  });

  it('without pod stats, an eviction message names only the resource', () => {
    const story = evictionMessage({ resource: 'memory', pod, measures: undefined, acting: [], observations });
    assert.deepEqual(story, { message: 'The node was low on resource: memory. ', annotations: {} });
  });

  it('an eviction message names the pod instead of its containers if the pod has pod-level memory requests', () => {
    const whole = aPod({
      spec: { containers: [{ name: 'main' }], resources: { requests: { memory: '64Mi' } } },
    });
    const input = { resource: 'memory', pod: whole, acting: [], observations } as const;
    const story = evictionMessage({ ...input, measures: { ...measures, containers: [] } });
    assert.equal(
      story.message,
      'The node was low on resource: memory. ' +
        'Pod web was using 300Mi, request is 64Mi, has larger consumption of memory. ',
    );
    assert.deepEqual(story.annotations, {
      offending_pod: 'web',
      offending_pod_usage: '300Mi',
      offending_containers: '',
      offending_containers_usage: '',
      starved_resource: 'memory',
    });
  });
});
