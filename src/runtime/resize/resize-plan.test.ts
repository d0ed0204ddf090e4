import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anInstance, anObservedPod } from '../../../test/fakes/observed.ts';
import { brief, quiet } from '../../../test/fakes/plans.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container, ResourceRequirements } from '../../kinds/index.ts';
import { effectiveAllocation, type Pod } from '../../pods/index.ts';
import { computePodActions } from '../plan/compute-pod-actions.ts';
import type { PlanContext } from '../plan/pod-actions.ts';
import { actuatedOf } from './actuated-resources.ts';

const cpu = (amount: string): ResourceRequirements => ({ requests: { cpu: amount } });
const container = (
  name: string,
  resources: ResourceRequirements,
  over: Partial<Container> = {},
): Container => ({
  name,
  image: 'x:1',
  resources,
  ...over,
});
const restarts = { resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] } as const;

function planned(before: Pod, after: Pod, running: readonly Container[], over: Partial<PlanContext> = {}) {
  const observed = anObservedPod({ containers: running.map((each) => anInstance(each)) });
  const context = { ...quiet, actuated: effectiveAllocation(before), ...over };
  const plan = computePodActions(after, observed, context);
  const { memory = [], cpu: cpus = [] } = plan.resize ?? {};
  const names = (list: typeof memory) => list.map((each) => each.container.name).join(' ');
  return { ...brief(plan), resize: plan.resize && { memory: names(memory), cpu: names(cpus) } };
}

test('a running container is resized in place', () => {
  const [was, is] = [container('a', cpu('1')), container('a', cpu('2'))];
  const [before, after] = [was, is].map((each) => aPod({ spec: { containers: [each] } })) as [Pod, Pod];
  assert.deepEqual(planned(before, after, [is]), { resize: { memory: '', cpu: 'a' } });
  assert.deepEqual(planned(after, after, [is]), { resize: undefined });
});

test('a container with the resize policy RestartContainer is restarted instead of resized', () => {
  const [was, is] = [container('a', cpu('1'), restarts), container('a', cpu('2'), restarts)];
  const [before, after] = [was, is].map((each) =>
    aPod({ spec: { restartPolicy: 'Never', containers: [each, container('b', cpu('1'))] } }),
  ) as [Pod, Pod];
  assert.deepEqual(planned(before, after, after.spec.containers), {
    start: [0],
    kill: ['Container a resize requires restart'],
    // The plan is not empty, because the pod's cgroup must change for the container.
    resize: { memory: '', cpu: '' },
  });
  const memory = aPod({
    spec: {
      restartPolicy: 'Never',
      containers: [
        container('a', { requests: { cpu: '1', memory: '1Gi' } }, restarts),
        container('b', cpu('1')),
      ],
    },
  });
  assert.deepEqual(planned(before, memory, memory.spec.containers), { resize: { memory: 'a', cpu: '' } });
});

test('running sidecars and init containers are resized like regular containers', () => {
  const side = (amount: string, over = {}) =>
    container('s', cpu(amount), { restartPolicy: 'Always', ...over });
  const pod = (init: Container) =>
    aPod({ spec: { initContainers: [init], containers: [container('a', cpu('1'))] } });
  const [before, after] = [pod(side('1')), pod(side('2'))];
  assert.deepEqual(planned(before, after, [side('2'), container('a', cpu('1'))]), {
    resize: { memory: '', cpu: 's' },
  });
  const anew = pod(side('2', restarts));
  assert.deepEqual(planned(before, anew, [side('2', restarts), container('a', cpu('1'))]), {
    init: [0],
    kill: ['Container s resize requires restart'],
    resize: { memory: '', cpu: '' },
  });
  const plain = (amount: string) => container('i', cpu(amount));
  assert.deepEqual(planned(pod(plain('1')), pod(plain('2')), [plain('2')]), {
    resize: { memory: '', cpu: 'i' },
  });
});

test("the pod's cgroup is resized for containers that start with other resources and for changed pod-level resources", () => {
  const pod = (amount: string, whole?: string) =>
    aPod({
      spec: {
        containers: [container('a', cpu(amount)), container('b', cpu('1'))],
        ...(whole !== undefined && { resources: { requests: { cpu: whole } } }),
      },
    });
  const b = container('b', cpu('1'));
  assert.deepEqual(planned(pod('1'), pod('2'), [b]), { start: [0], resize: { memory: '', cpu: '' } });
  assert.deepEqual(planned(pod('1'), pod('1'), [b]), { start: [0], resize: undefined });
  const running = [container('a', cpu('1')), b];
  assert.deepEqual(planned(pod('1', '3'), pod('1', '4'), running), { resize: { memory: '', cpu: '' } });
  // Adding or removing pod-level resources also resizes the cgroup.
  assert.deepEqual(planned(pod('1'), pod('1', '4'), running), { resize: { memory: '', cpu: '' } });
  assert.deepEqual(planned(pod('1', '4'), pod('1'), running), { resize: { memory: '', cpu: '' } });
});

test('a pod-level limit applies to containers without their own limit', () => {
  const pod = (limit: string) =>
    aPod({ spec: { containers: [container('a', cpu('1'))], resources: { limits: { memory: limit } } } });
  assert.deepEqual(planned(pod('1Gi'), pod('2Gi'), [container('a', cpu('1'))]), {
    resize: { memory: 'a', cpu: '' },
  });
});

test('without recorded actuated resources, the values that the runtime reports count as actuated, and the allocated value counts where the runtime reports none', () => {
  const full = { requests: { cpu: '500m', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } };
  const main = container('a', full, restarts);
  const pod = aPod({ spec: { containers: [main] } });
  const reported = { cpuShares: 512, cpuQuota: 100_000, cpuPeriod: 100_000, memoryLimitBytes: 2 ** 27 };
  const seen = (resources: typeof reported | undefined) =>
    anObservedPod({ containers: [anInstance(main, { resources })] });
  const found = (resources: typeof reported | undefined) =>
    actuatedOf(pod, seen(resources), undefined)?.containers['a'];
  assert.deepEqual(found(undefined), full);
  assert.deepEqual(found(reported), full);
  assert.deepEqual(found({ ...reported, cpuShares: 1024, memoryLimitBytes: 2 ** 26 }), {
    requests: { cpu: '1', memory: '64Mi' },
    limits: { cpu: '1', memory: '64Mi' },
  });
  const record = { containers: { a: cpu('7') } };
  assert.equal(actuatedOf(pod, seen(reported), record), record);
});
