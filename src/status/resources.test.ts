import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { anInstance, observe } from '../../test/fakes/runtime-view.ts';
import { aStatusContext } from '../../test/fakes/status-context.ts';
import type { ContainerStatus, PodSpec, PodStatus, ResourceRequirements } from '../kinds/index.ts';
import type { ObservedContainer, ObservedResources } from '../pods/index.ts';
import { generatePodStatus } from './generate.ts';

const silent: ObservedResources = {
  cpuShares: undefined,
  cpuQuota: undefined,
  cpuPeriod: undefined,
  memoryLimitBytes: undefined,
};

function statusOf(
  spec: Partial<PodSpec>,
  instance: Partial<ObservedContainer> = {},
  previous: PodStatus = {},
): PodStatus {
  const pod = aPod({ spec });
  return generatePodStatus(pod, observe(pod, [anInstance(instance)]), aStatusContext({ previous }));
}

/**
 * Returns the resources in the status of a pod's only container, given allocated and reported
 * resources.
 */
function shown(
  resources: ResourceRequirements | undefined,
  told: Partial<ObservedResources> | undefined,
  over: { readonly state?: 'running' | 'exited'; readonly previous?: PodStatus } = {},
): ContainerStatus | undefined {
  const containers = [{ name: 'main', image: 'x', ...(resources === undefined ? {} : { resources }) }];
  const observed = told === undefined ? undefined : { ...silent, ...told };
  const instance = { state: over.state ?? 'running', resources: observed } as const;
  return statusOf({ containers }, instance, over.previous).containerStatuses?.[0];
}

const allotted = {
  requests: { cpu: '0.5', memory: '64Mi', 'example.com/gpu': '1' },
  limits: { cpu: '1', memory: '128Mi', 'example.com/gpu': '1' },
};

describe("resources in a container's status", () => {
  it('a running container has the resources that the runtime reports', () => {
    const reported = { cpuShares: 204, cpuQuota: 30_000, cpuPeriod: 100_000, memoryLimitBytes: 67_108_864 };
    assert.deepEqual(shown(allotted, reported)?.resources, {
      requests: { ...allotted.requests, cpu: '200m' },
      limits: { ...allotted.limits, cpu: '300m', memory: '64Mi' },
    });
  });

  it("the spec's text of a quantity is kept when its value equals the reported one", () => {
    const reported = { cpuShares: 512, cpuQuota: 100_000, cpuPeriod: 100_000, memoryLimitBytes: 134_217_728 };
    assert.deepEqual(shown(allotted, reported)?.resources, allotted);
  });

  it('a container has the allocated resources when it does not run or the runtime reports none', () => {
    assert.deepEqual(shown(allotted, { cpuShares: 204 }, { state: 'exited' })?.resources, allotted);
    assert.deepEqual(shown(allotted, undefined)?.resources, allotted);
    assert.deepEqual(shown(allotted, { cpuQuota: -1, cpuPeriod: 100_000 })?.resources, allotted);
  });

  it('CPU amounts are kept when the kernel cannot distinguish them from its minimum', () => {
    const sliver = { requests: { cpu: '1m' }, limits: { cpu: '5m' } };
    const reported = { cpuShares: 2, cpuQuota: 1_000, cpuPeriod: 100_000 };
    assert.deepEqual(shown(sliver, reported)?.resources, sliver);
    const grown = { ...reported, cpuShares: 102, cpuQuota: 20_000 };
    assert.deepEqual(shown(sliver, grown)?.resources, { requests: { cpu: '100m' }, limits: { cpu: '200m' } });
  });

  it('resources that were not requested are omitted', () => {
    const reported = { cpuShares: 2, memoryLimitBytes: 4096 };
    assert.deepEqual(shown(undefined, reported)?.resources, {});
    assert.equal(shown(undefined, reported)?.allocatedResources, undefined);
  });

  it('published resources of the same instance are kept when the runtime reports none', () => {
    const before = { requests: { cpu: '250m', memory: '64Mi' }, limits: { cpu: '400m', memory: '100Mi' } };
    const published = (containerID: string): PodStatus => ({
      containerStatuses: [
        {
          name: 'main',
          ready: true,
          restartCount: 0,
          image: 'x',
          imageID: '',
          containerID,
          state: { running: {} },
          resources: before,
        },
      ],
    });
    const same = shown(allotted, undefined, { previous: published('containerd://main-0') });
    assert.deepEqual(same?.resources?.limits, { ...allotted.limits, ...before.limits });
    assert.deepEqual(same?.allocatedResources, allotted.requests);
    const other = shown(allotted, undefined, { previous: published('containerd://other') });
    assert.deepEqual(other?.resources, allotted);
  });
});

describe("resources in a pod's status", () => {
  const one = (resources: ResourceRequirements) => ({ name: 'main', image: 'x', resources });

  it("a pod's resources are the sum of its containers' and the overhead", () => {
    const amount = { cpu: '100m', memory: '100Mi' };
    const { resources, allocatedResources } = statusOf({
      containers: [one({ requests: amount, limits: amount })],
      overhead: { cpu: '200m', memory: '140Mi' },
    });
    const sum = { cpu: '300m', memory: '240Mi' };
    assert.deepEqual([allocatedResources, resources], [sum, { requests: sum, limits: sum }]);
  });

  it('a pod has a limit only if every container has one', () => {
    const limited = one({ requests: { cpu: '1' }, limits: { cpu: '2', memory: '64Mi' } });
    const free = { ...one({ limits: { cpu: '1' } }), name: 'other' };
    const { resources } = statusOf({ containers: [limited, free] });
    assert.deepEqual(resources, { requests: { cpu: '1' }, limits: { cpu: '3' } });
  });

  it('pod-level resources are used when they are set', () => {
    const whole = { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '2Gi' } };
    const { resources } = statusOf({ containers: [one({ requests: { cpu: '100m' } })], resources: whole });
    assert.deepEqual(resources, whole);
  });

  it('the resources of a pod without requests are empty', () => {
    const { resources, allocatedResources } = statusOf({ containers: [one({})] });
    assert.deepEqual([resources, allocatedResources], [{}, undefined]);
  });
});
