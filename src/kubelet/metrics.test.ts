import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { instant, MetricRegistry } from '../lib/index.ts';
import { annotations, podUid } from '../pods/index.ts';
import { collectPodMetrics, kubeletMetrics, startedAfterMs } from './metrics.ts';

const { signal } = new AbortController();

async function linesOf(registry: MetricRegistry, name: string): Promise<readonly string[]> {
  const text = await registry.expose(signal);
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

function createHarness() {
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  return { registry, observer: kubeletMetrics(registry), lines: (name: string) => linesOf(registry, name) };
}

const staticPod = aPod({ metadata: { annotations: { [annotations.source]: 'file' } } });

test('creates all metric series of the pod workers with zero before the first event', async () => {
  const { lines } = createHarness();
  const all = await lines('kubelet_working_pods');
  assert.equal(all.length, 15);
  for (const line of all) assert.match(line, / 0$/);
  for (const lifecycle of ['sync', 'terminating', 'terminated']) {
    const unknown = all.filter(
      (line) => line.includes(`lifecycle="${lifecycle}"`) && line.includes('unknown'),
    );
    assert.deepEqual(unknown, [
      `kubelet_working_pods{lifecycle="${lifecycle}",config="runtime_only",static="unknown"} 0`,
    ]);
  }
  assert.deepEqual(await lines('kubelet_desired_pods'), [
    'kubelet_desired_pods{static=""} 0',
    'kubelet_desired_pods{static="true"} 0',
  ]);
  assert.deepEqual(await lines('kubelet_restarted_pods_total'), [
    'kubelet_restarted_pods_total{static=""} 0',
    'kubelet_restarted_pods_total{static="true"} 0',
  ]);
  for (const name of ['kubelet_mirror_pods', 'kubelet_orphaned_runtime_pods_total'])
    assert.deepEqual(await lines(name), [`${name} 0`]);
});

test('sets gauges and increments counters after each housekeeping round', async () => {
  const { observer, lines } = createHarness();
  const counts = {
    desired: [staticPod, aPod(), aPod()],
    active: [staticPod],
    mirrors: [],
    restarted: [staticPod],
    orphanedRuntimePods: 2,
    workers: new Map([
      [podUid('a'), { state: 'sync', orphan: false, hasConfig: true, isStatic: true } as const],
      [podUid('b'), { state: 'terminating', orphan: true, hasConfig: true, isStatic: false } as const],
      [podUid('c'), { state: 'terminating', orphan: true, hasConfig: false, isStatic: false } as const],
    ]),
  };
  observer.cleanedUp(counts);
  observer.cleanedUp(counts);
  assert.deepEqual(await lines('kubelet_desired_pods'), [
    'kubelet_desired_pods{static=""} 2',
    'kubelet_desired_pods{static="true"} 1',
  ]);
  assert.deepEqual(await lines('kubelet_active_pods'), [
    'kubelet_active_pods{static=""} 0',
    'kubelet_active_pods{static="true"} 1',
  ]);
  assert.deepEqual(await lines('kubelet_restarted_pods_total'), [
    'kubelet_restarted_pods_total{static=""} 0',
    'kubelet_restarted_pods_total{static="true"} 2',
  ]);
  assert.deepEqual(await lines('kubelet_orphaned_runtime_pods_total'), [
    'kubelet_orphaned_runtime_pods_total 4',
  ]);
  assert.deepEqual(
    (await lines('kubelet_working_pods')).filter((line) => !line.endsWith(' 0')),
    [
      'kubelet_working_pods{lifecycle="sync",config="desired",static="true"} 1',
      'kubelet_working_pods{lifecycle="terminating",config="orphan",static=""} 1',
      'kubelet_working_pods{lifecycle="terminating",config="runtime_only",static="unknown"} 1',
    ],
  );
});

test('counts a rejection with an unlisted reason as Other', async () => {
  const { observer, lines } = createHarness();
  for (const reason of ['OutOfpods', 'OutOfexample.com/gpu', 'Whim']) observer.rejected(reason);
  assert.deepEqual(await lines('kubelet_admission_rejections_total'), [
    'kubelet_admission_rejections_total{reason="OutOfpods"} 1',
    'kubelet_admission_rejections_total{reason="OutOfExtendedResources"} 1',
    'kubelet_admission_rejections_total{reason="Other"} 1',
  ]);
});

test('exports stuck pods and orphan directories as gauges', async () => {
  const { observer, lines } = createHarness();
  observer.stuck({ busy: 1, missing: 2 });
  observer.orphanDirectories({ orphans: 3, blocked: 1 });
  assert.deepEqual(
    [
      await lines('kubeling_pod_workers_stuck'),
      await lines('kubeling_pods_without_worker'),
      await lines('kubelet_orphan_pod_cleaned_volumes'),
      await lines('kubelet_orphan_pod_cleaned_volumes_errors'),
    ].flat(),
    [
      'kubeling_pod_workers_stuck 1',
      'kubeling_pods_without_worker 2',
      'kubelet_orphan_pod_cleaned_volumes 3',
      'kubelet_orphan_pod_cleaned_volumes_errors 1',
    ],
  );
});

test('measures a pod start from the first observation to its first running container', () => {
  const at = Date.parse('2026-01-01T00:00:10Z');
  const pod = aPod({ metadata: { annotations: { [annotations.seen]: '2026-01-01T00:00:07.500000000Z' } } });
  const change = { uid: pod.metadata.uid, pod, version: 1, isFinished: false };
  const running = { phase: 'Running' };
  assert.equal(
    startedAfterMs({ ...change, before: { phase: 'Pending' }, after: running }, instant(at)),
    2_500,
  );
  assert.equal(startedAfterMs({ ...change, before: undefined, after: running }, instant(at)), 2_500);
  assert.equal(startedAfterMs({ ...change, before: running, after: running }, instant(at)), undefined);
  const unseen = { ...change, pod: aPod(), before: undefined, after: running };
  assert.equal(startedAfterMs(unseen, instant(at)), undefined);
});

test('counts ephemeral containers of desired pods at scrape time', async () => {
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  collectPodMetrics(registry, () => [aPod({ spec: { ephemeralContainers: [{ name: 'debug' }] } }), aPod()]);
  assert.deepEqual(await linesOf(registry, 'kubelet_managed_ephemeral_containers'), [
    'kubelet_managed_ephemeral_containers 1',
  ]);
});
