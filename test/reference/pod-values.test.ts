import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodSpec } from '../../src/kinds/index.ts';
import { collectLogs, detectCgroupLayout } from '../../src/lib/index.ts';
import { initContainersOf, podUid, qosClass } from '../../src/pods/index.ts';
import {
  type CgroupDriver,
  CgroupManager,
  PodContainerManager,
  podCgroupValues,
  QosContainerManager,
} from '../../src/resources/index.ts';
import { oomScoreAdj } from '../../src/runtime/index.ts';
import { RecordedJournal } from '../fakes/journal.ts';
import { aPod } from '../fakes/pods.ts';
import { SimulatedCgroupHost } from '../fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

/**
 * A pod with the values that the functions of the Go kubelet, version 1.36.4, computed from its
 * spec on a machine with 8 GiB. -1 means that the Go kubelet does not set the value.
 */
interface ReferencePod {
  readonly what: string;
  readonly spec: PodSpec;
  readonly expected: {
    readonly quality: string;
    readonly cgroupfs: string;
    readonly systemd: string;
    readonly shares: number;
    readonly quota: number;
    readonly memory: number;
    readonly pages: number;
    /** The OOM scores of the init containers, then of the regular containers. */
    readonly oomScores: readonly number[];
  };
}

const uid = podUid('0a1b2c3d-1111-2222-3333-444455556666');
const directory = 'pod0a1b2c3d-1111-2222-3333-444455556666';
const slice = 'pod0a1b2c3d_1111_2222_3333_444455556666.slice';
const memoryCapacity = 8n << 30n;
const settings = {
  cpuCfsQuota: true,
  cpuCfsQuotaPeriodUs: 100_000,
  podPidsLimit: -1,
  hugePageSizes: ['2MB'],
};

const referencePods: readonly ReferencePod[] = [
  {
    what: 'asks for nothing',
    spec: { containers: [{ name: 'main', image: 'x', resources: {} }] },
    expected: {
      quality: 'BestEffort',
      cgroupfs: `/kubepods/besteffort/${directory}`,
      systemd: `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-${slice}`,
      shares: 2,
      quota: -1,
      memory: -1,
      pages: 0,
      oomScores: [1000],
    },
  },
  {
    what: 'asks for exactly its limits',
    spec: {
      containers: [
        {
          name: 'main',
          image: 'x',
          resources: { requests: { cpu: '100m', memory: '100Mi' }, limits: { cpu: '100m', memory: '100Mi' } },
        },
      ],
    },
    expected: {
      quality: 'Guaranteed',
      cgroupfs: `/kubepods/${directory}`,
      systemd: `/kubepods.slice/kubepods-${slice}`,
      shares: 102,
      quota: 10000,
      memory: 104857600,
      pages: 0,
      oomScores: [-997],
    },
  },
  {
    what: 'costs overhead',
    spec: {
      containers: [
        {
          name: 'main',
          image: 'x',
          resources: { requests: { cpu: '100m', memory: '100Mi' }, limits: { cpu: '100m', memory: '100Mi' } },
        },
      ],
      overhead: { cpu: '200m', memory: '140Mi' },
    },
    expected: {
      quality: 'Guaranteed',
      cgroupfs: `/kubepods/${directory}`,
      systemd: `/kubepods.slice/kubepods-${slice}`,
      shares: 307,
      quota: 30000,
      memory: 251658240,
      pages: 0,
      oomScores: [-997],
    },
  },
  {
    what: 'asks for CPU only',
    spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '250m' } } }] },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 256,
      quota: -1,
      memory: -1,
      pages: 0,
      oomScores: [999],
    },
  },
  {
    what: 'asks for less than its limits',
    spec: {
      containers: [
        {
          name: 'main',
          image: 'x',
          resources: { requests: { cpu: '250m', memory: '1Gi' }, limits: { cpu: '1', memory: '2Gi' } },
        },
      ],
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 256,
      quota: 100000,
      memory: 2147483648,
      pages: 0,
      oomScores: [875],
    },
  },
  {
    what: 'limits one container of two',
    spec: {
      containers: [
        {
          name: 'a',
          image: 'x',
          resources: { requests: { memory: '64Mi' }, limits: { cpu: '500m', memory: '64Mi' } },
        },
        { name: 'b', image: 'x', resources: {} },
      ],
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 2,
      quota: -1,
      memory: -1,
      pages: 0,
      oomScores: [993, 999],
    },
  },
  {
    what: 'asks for a sliver of CPU',
    spec: {
      containers: [
        {
          name: 'main',
          image: 'x',
          resources: { requests: { cpu: '1m', memory: '1Gi' }, limits: { cpu: '1m', memory: '2Gi' } },
        },
      ],
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 2,
      quota: 1000,
      memory: 2147483648,
      pages: 0,
      oomScores: [875],
    },
  },
  {
    what: 'asks for more than any weight',
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '300', memory: '10Gi' } } }],
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 262144,
      quota: -1,
      memory: -1,
      pages: 0,
      oomScores: [3],
    },
  },
  {
    what: 'has a hungry init container',
    spec: {
      containers: [
        {
          name: 'main',
          image: 'x',
          resources: { requests: { cpu: '100m', memory: '100Mi' }, limits: { cpu: '100m', memory: '100Mi' } },
        },
      ],
      initContainers: [
        {
          name: 'init',
          image: 'x',
          resources: { requests: { cpu: '2', memory: '50Mi' }, limits: { cpu: '2', memory: '50Mi' } },
        },
      ],
    },
    expected: {
      quality: 'Guaranteed',
      cgroupfs: `/kubepods/${directory}`,
      systemd: `/kubepods.slice/kubepods-${slice}`,
      shares: 2048,
      quota: 200000,
      memory: 104857600,
      pages: 0,
      oomScores: [-997, -997],
    },
  },
  {
    what: 'has a sidecar',
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests: { memory: '1Gi' } } }],
      initContainers: [
        {
          name: 'side',
          image: 'x',
          resources: { requests: { cpu: '100m', memory: '128Mi' } },
          restartPolicy: 'Always',
        },
      ],
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 102,
      quota: -1,
      memory: -1,
      pages: 0,
      oomScores: [875, 875],
    },
  },
  {
    what: 'sets resources as a whole',
    spec: {
      containers: [
        { name: 'a', image: 'x', resources: { requests: { memory: '512Mi' } } },
        { name: 'b', image: 'x', resources: {} },
      ],
      resources: { requests: { cpu: '1', memory: '2Gi' }, limits: { cpu: '2', memory: '4Gi' } },
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 1024,
      quota: 200000,
      memory: 4294967296,
      pages: 0,
      oomScores: [844, 907],
    },
  },
  {
    what: 'limits itself as a whole exactly',
    spec: {
      containers: [{ name: 'main', image: 'x', resources: {} }],
      resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } },
    },
    expected: {
      quality: 'Guaranteed',
      cgroupfs: `/kubepods/${directory}`,
      systemd: `/kubepods.slice/kubepods-${slice}`,
      shares: 1024,
      quota: 100000,
      memory: 1073741824,
      pages: 0,
      oomScores: [-997],
    },
  },
  {
    what: 'keeps the node alive',
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '250m' } } }],
      priority: 2000001000,
      priorityClassName: 'system-node-critical',
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 256,
      quota: -1,
      memory: -1,
      pages: 0,
      oomScores: [-997],
    },
  },
  {
    what: 'asks for huge pages',
    spec: {
      containers: [
        {
          name: 'main',
          image: 'x',
          resources: {
            requests: { memory: '64Mi', 'hugepages-2Mi': '8Mi' },
            limits: { memory: '64Mi', 'hugepages-2Mi': '8Mi' },
          },
        },
      ],
    },
    expected: {
      quality: 'Burstable',
      cgroupfs: `/kubepods/burstable/${directory}`,
      systemd: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${slice}`,
      shares: 2,
      quota: -1,
      memory: 67108864,
      pages: 8388608,
      oomScores: [993],
    },
  },
];

async function placesOf(pod: ReturnType<typeof aPod>, driver: CgroupDriver): Promise<string> {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const host = new SimulatedCgroupHost({ mode: 'v1' });
  const cgroups = new CgroupManager({ host, layout: await detectCgroupLayout(host), driver, clock });
  const above = { cgroupRoot: [], kubepods: {}, hugePageSizes: [], activePods: () => [] };
  const qos = new QosContainerManager({ ...above, cgroups, clock, logger });
  const journal = new RecordedJournal();
  return new PodContainerManager({ cgroups, qos, settings, journal, logger }).cgroupParent(pod);
}

for (const { what, spec, expected } of referencePods) {
  test(`a pod that ${what} has the cgroup, resource limits and OOM scores of the Go kubelet`, async () => {
    const pod = aPod({ metadata: { uid }, spec });
    const { cpuShares, cpuQuotaUs = -1, memoryBytes = -1, hugePages } = podCgroupValues(pod, settings);
    const containers = [...initContainersOf(pod), ...pod.spec.containers];
    assert.deepEqual(
      {
        quality: qosClass(pod),
        cgroupfs: await placesOf(pod, 'cgroupfs'),
        systemd: await placesOf(pod, 'systemd'),
        shares: cpuShares,
        quota: cpuQuotaUs,
        memory: memoryBytes,
        pages: hugePages?.get('2MB'),
        oomScores: containers.map((each) => Number(oomScoreAdj(pod, each, memoryCapacity))),
      },
      expected,
    );
  });
}
