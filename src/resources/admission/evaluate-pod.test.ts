import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import type { Node, Taint, Toleration } from '../../kinds/index.ts';
import { annotations, type Pod, podUid } from '../../pods/index.ts';
import { type AdmissionFacts, evaluatePod } from './evaluate-pod.ts';

const node: Node = {
  metadata: { name: 'n1', labels: { zone: 'a', size: '7', 'kubernetes.io/os': 'linux' } },
  status: {
    allocatable: {
      cpu: '3920m',
      memory: '1Gi',
      'ephemeral-storage': '10Gi',
      pods: '3',
      'example.com/gpu': '2',
      'hugepages-2Mi': '4Mi',
    },
  },
};

const calm: AdmissionFacts = {
  standing: 'new',
  node,
  others: [],
  ending: new Set(),
  pressures: [],
  isShuttingDown: false,
  strictGroups: true,
  tolerationRules: 'plain',
  podLevelResources: true,
  declaredFeatures: new Set(),
};

type Requests = Readonly<Record<string, string>>;

function asking(requests: Requests, name = 'web', more: PodParts['spec'] = {}): Pod {
  return aPod({
    metadata: { name, uid: podUid(name) },
    spec: { containers: [{ name: 'main', resources: { requests } }], ...more },
  });
}

/** Evaluates a pod: returns `admit`, the reason and message of the rejection, or the next step. */
function evaluated(pod: Pod, facts: Partial<AdmissionFacts> = {}): string {
  const evaluation = evaluatePod(pod, { ...calm, ...facts });
  if (evaluation.kind === 'preempt') {
    const { victims, resource } = evaluation.preemption;
    return `preempt ${resource}: ${victims.map(({ metadata }) => metadata.name).join(' ')}`;
  }
  if (evaluation.kind === 'admit' || evaluation.kind === 'allocate') return evaluation.kind;
  const { reason, message } = evaluation.rejection;
  return `${evaluation.kind === 'reject' ? '' : `${evaluation.kind} `}${reason}: ${message}`;
}

const withSpec = (spec: PodParts['spec']) => aPod({ spec: { ...spec } });
const critical = { priority: 2_000_000_000 };
const affinityMessage = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";

describe('admission by node capacity', () => {
  const used = asking({ cpu: '3838m', memory: '512Mi', 'example.com/gpu': '1' }, 'other');

  it('rejects a pod that exceeds a resource, with CPU in millicores and memory in bytes', () => {
    const rows: readonly (readonly [Requests, string])[] = [
      [{ cpu: '82m', memory: '512Mi' }, 'admit'],
      [
        { cpu: '100m' },
        "OutOfcpu: Node didn't have enough resource: cpu, requested: 100, used: 3838, capacity: 3920",
      ],
      [
        { memory: '513Mi' },
        "OutOfmemory: Node didn't have enough resource: memory, requested: 537919488, used: 536870912, capacity: 1073741824",
      ],
      [
        { 'ephemeral-storage': '11Gi' },
        "OutOfephemeral-storage: Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240",
      ],
      [
        { 'example.com/gpu': '2' },
        "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 2, used: 1, capacity: 2",
      ],
      [
        { 'hugepages-2Mi': '6Mi' },
        "OutOfhugepages-2Mi: Node didn't have enough resource: hugepages-2Mi, requested: 6291456, used: 0, capacity: 4194304",
      ],
      // Admission ignores resources that the node does not have, because the scheduler accounts for
      // them.
      [{ 'example.com/fpga': '9' }, 'admit'],
      [
        { cpu: '4', memory: '2Gi' },
        "OutOfcpu: Node didn't have enough resource: cpu, requested: 4000, used: 3838, capacity: 3920",
      ],
    ];
    for (const [requests, expected] of rows)
      assert.equal(evaluated(asking(requests), { others: [used] }), expected);
  });

  it('limits the number of admitted pods, whatever they request', () => {
    const rest = ['a', 'b', 'c'].map((name) => asking({}, name));
    assert.equal(
      evaluated(asking({ cpu: '9' }), { others: rest }),
      "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    );
    assert.equal(evaluated(asking({}), { others: rest.slice(1) }), 'admit');
  });

  it('includes the overhead of the RuntimeClass in the requests, and excludes resources from claims', () => {
    const heavy = asking({ cpu: '3900m' }, 'web', { overhead: { cpu: '21m' } });
    assert.match(evaluated(heavy), /^OutOfcpu: .*requested: 3921,/);
    for (const resourceName of ['example.com/gpu', 'deviceclass.resource.kubernetes.io/gpu']) {
      const gpus = asking({ [resourceName]: '3' });
      const mapping = { containerName: 'main', resourceName, requestName: 'r' };
      const extendedResourceClaimStatus = { requestMappings: [mapping], resourceClaimName: 'c' };
      assert.match(evaluated(gpus), new RegExp(`^OutOf${resourceName}`));
      assert.equal(evaluated({ ...gpus, status: { extendedResourceClaimStatus } }), 'admit');
    }
  });

  it('postpones the admission when terminating pods will release enough resources', () => {
    const ending = new Set([used.metadata.uid]);
    assert.match(
      evaluated(asking({ cpu: '100m' }), { others: [used], ending }),
      /^wait-for-termination OutOfcpu: /,
    );
    assert.match(evaluated(asking({ cpu: '4' }), { others: [used], ending }), /^OutOfcpu: /);
    const ports = { containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort: 80 }] }] };
    const holder = asking({}, 'holder', ports);
    const evaluation = evaluated(withSpec(ports), {
      others: [holder],
      ending: new Set([holder.metadata.uid]),
    });
    assert.match(evaluation, /^wait-for-termination NodePorts: /);
  });
});

describe('admission by node labels, names, ports and taints', () => {
  const term = (key: string, operator: string, ...values: readonly string[]) => ({
    matchExpressions: [{ key, operator, values }],
  });
  const requiring = (...nodeSelectorTerms: readonly object[]) =>
    withSpec({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: nodeSelectorTerms as never },
        },
      },
    });
  const field = (operator: string, ...values: readonly string[]) => ({
    matchFields: [{ key: 'metadata.name', operator, values }],
  });

  it('fetches the Node object before rejecting a pod for mismatched node labels alone', () => {
    assert.equal(evaluated(withSpec({ nodeSelector: { zone: 'a' } })), 'admit');
    const elsewhere = withSpec({ nodeSelector: { zone: 'b' } });
    assert.equal(evaluated(elsewhere), `fetch-node NodeAffinity: ${affinityMessage}`);
    const other = withSpec({ nodeSelector: { zone: 'b' }, nodeName: 'n2' });
    assert.equal(evaluated(other), `NodeAffinity: ${affinityMessage}`);
  });

  it('admits a pod that matches one of its required node selector terms', () => {
    const matching = [
      requiring(term('zone', 'In', 'x', 'a')),
      requiring(term('zone', 'In', 'x'), term('zone', 'Exists')),
      requiring(term('zone', 'NotIn', 'b')),
      requiring(term('none', 'NotIn', 'b')),
      requiring(term('none', 'DoesNotExist')),
      requiring(term('size', 'Gt', '6')),
      requiring(term('size', 'Lt', '8')),
      requiring(field('In', 'n1')),
      requiring(field('NotIn', 'n2')),
      requiring({ ...term('zone', 'In', 'a'), ...field('In', 'n1') }),
    ];
    for (const pod of matching) assert.equal(evaluated(pod), 'admit', JSON.stringify(pod.spec.affinity));
  });

  it('a node does not match node selector terms whose requirements it does not meet, that have no requirements, or that have invalid ones', () => {
    const failing = [
      requiring(),
      requiring({}),
      requiring(term('zone', 'In', 'b')),
      requiring(term('zone', 'NotIn', 'a')),
      requiring(term('none', 'Exists')),
      requiring(term('zone', 'DoesNotExist')),
      requiring(term('size', 'Gt', '7')),
      requiring(term('zone', 'Gt', '1')),
      requiring(term('size', 'Gt', '1', '2')),
      requiring(term('zone', 'Like', 'a')),
      requiring(field('In', 'n2')),
      requiring(field('In', 'n1', 'n2')),
      requiring(field('Exists')),
      requiring({ ...term('zone', 'In', 'a'), ...field('In', 'n2') }),
    ];
    for (const pod of failing)
      assert.match(evaluated(pod), /^fetch-node NodeAffinity/, JSON.stringify(pod.spec.affinity));
  });

  it('rejects a pod whose nodeName is another node', () => {
    assert.equal(evaluated(withSpec({ nodeName: 'n1' })), 'admit');
    assert.equal(
      evaluated(withSpec({ nodeName: 'n2' })),
      "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name",
    );
  });

  it('rejects a pod with a host port on which the node listens, without waiting', () => {
    const nodePortProblem = 'host port 10250 is used by the node itself';
    assert.equal(evaluated(asking({}), { nodePortProblem }), `NodePorts: ${nodePortProblem}`);
  });

  it('admits only one pod for each host port', () => {
    const port = (hostPort: number, hostIP?: string, protocol?: string) =>
      asking({}, `p${hostPort}${hostIP}${protocol}`, {
        containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort, hostIP, protocol }] }],
      });
    const taken =
      "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    const beside = (pod: Pod, other: Pod) => evaluated(pod, { others: [other] });
    assert.equal(beside(port(80), port(80)), taken);
    assert.equal(beside(port(80), port(81)), 'admit');
    assert.equal(beside(port(80), port(80, undefined, 'UDP')), 'admit');
    assert.equal(beside(port(80, '10.0.0.1'), port(80)), taken);
    assert.equal(beside(port(80), port(80, '10.0.0.1')), taken);
    assert.equal(beside(port(80, '10.0.0.1'), port(80, '10.0.0.2')), 'admit');
    assert.equal(beside(port(0), port(0)), 'admit');
    const ports = [{ containerPort: 80, hostPort: 80 }];
    const init = (restartPolicy?: string) =>
      asking({}, 'i', { initContainers: [{ name: 'i', ports, restartPolicy }], containers: [{ name: 'm' }] });
    assert.equal(beside(init(), port(80)), 'admit');
    assert.equal(beside(init('Always'), port(80)), taken);
  });

  it('rejects pods that do not tolerate a NoExecute taint', () => {
    const refused =
      "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    const on = (taint: Taint, tolerations: readonly Toleration[], facts: Partial<AdmissionFacts> = {}) =>
      evaluated(withSpec({ tolerations }), { node: { ...node, spec: { taints: [taint] } }, ...facts });
    const taint = { key: 'k', value: '5', effect: 'NoExecute' };
    assert.equal(on(taint, []), refused);
    assert.equal(on({ ...taint, effect: 'NoSchedule' }, []), 'admit');
    assert.equal(on(taint, [{ operator: 'Exists' }]), 'admit');
    assert.equal(on(taint, [{ key: 'k', operator: 'Exists', effect: 'NoExecute' }]), 'admit');
    assert.equal(on(taint, [{ key: 'k', value: '5' }]), 'admit');
    assert.equal(on(taint, [{ key: 'k', value: '6' }]), refused);
    assert.equal(on(taint, [{ key: 'j', operator: 'Exists' }]), refused);
    assert.equal(on(taint, [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }]), refused);
    assert.equal(on(taint, [{ key: 'k', operator: 'Lt', value: '6' }]), refused);
    const comparing = { tolerationRules: 'with-comparisons' } as const;
    assert.equal(on(taint, [{ key: 'k', operator: 'Lt', value: '6' }], comparing), 'admit');
    assert.equal(on(taint, [{ key: 'k', operator: 'Gt', value: '6' }], comparing), refused);
    const file = aPod({ metadata: { annotations: { [annotations.source]: 'file' } } });
    assert.equal(evaluated(file, { node: { ...node, spec: { taints: [taint] } } }), 'admit');
  });
});

describe('admission by system requirements', () => {
  it('rejects pods for another operating system', () => {
    const labels = (os: string) => aPod({ metadata: { labels: { 'kubernetes.io/os': os } } });
    assert.equal(evaluated(labels('linux')), 'admit');
    assert.equal(
      evaluated(labels('windows')),
      "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    );
    assert.equal(evaluated(withSpec({ os: { name: 'linux' } })), 'admit');
    assert.equal(
      evaluated(withSpec({ os: { name: 'windows' } })),
      "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
    );
  });

  it('rejects a pod with a strict supplemental groups policy if the runtime does not support it', () => {
    const strict = withSpec({ securityContext: { supplementalGroupsPolicy: 'Strict' } });
    assert.equal(evaluated(strict), 'admit');
    assert.equal(
      evaluated(strict, { strictGroups: false }),
      'SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node',
    );
    const merge = withSpec({ securityContext: { supplementalGroupsPolicy: 'Merge' } });
    assert.equal(evaluated(merge, { strictGroups: false }), 'admit');
  });

  it('rejects every pod while no Node object is available', () => {
    assert.equal(evaluated(aPod(), { node: undefined }), 'InvalidNodeInfo: Kubelet cannot get node info.');
  });

  it('rejects pods that use features which are disabled or not declared', () => {
    const sized = withSpec({ resources: { requests: { cpu: '1' } } });
    assert.equal(evaluated(sized), 'admit');
    assert.equal(
      evaluated(sized, { podLevelResources: false }),
      'PodLevelResourcesNotSupported: PodLevelResources feature gate is disabled',
    );
    const both = withSpec({
      hostNetwork: true,
      hostUsers: false,
      containers: [{ name: 'main', restartPolicyRules: [{ action: 'RestartAllContainers' }] }],
    });
    assert.equal(
      evaluated(both),
      'PodFeatureUnsupported: Pod requires node features that are not available: RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport',
    );
    assert.equal(evaluated(both, { declaredFeatures: undefined }), 'admit');
    const declaredFeatures = new Set([
      'RestartAllContainersOnContainerExits',
      'UserNamespacesHostNetworkSupport',
    ]);
    assert.equal(evaluated(both, { declaredFeatures }), 'admit');
  });

  it('rejects every pod during a node shutdown', () => {
    assert.equal(
      evaluated(aPod(), { isShuttingDown: true }),
      'NodeShutdown: Pod was rejected as the node is shutting down.',
    );
  });
});

describe('admission on a node under pressure', () => {
  const evicted = 'Evicted: The node had condition: [MemoryPressure]. ';
  const memory = { pressures: ['MemoryPressure'] };

  it('admits pods with memory requests if the only pressure is memory', () => {
    assert.equal(evaluated(asking({ memory: '1Mi' }), memory), 'admit');
    assert.equal(evaluated(aPod(), memory), evicted);
    assert.equal(
      evaluated(asking({ memory: '1Mi' }), { pressures: ['DiskPressure', 'MemoryPressure'] }),
      'Evicted: The node had condition: [DiskPressure MemoryPressure]. ',
    );
  });

  it('admits pods that tolerate the pressure taint, and critical pods', () => {
    const key = 'node.kubernetes.io/memory-pressure';
    assert.equal(evaluated(withSpec({ tolerations: [{ key, operator: 'Exists' }] }), memory), 'admit');
    const disk = 'node.kubernetes.io/disk-pressure';
    assert.equal(evaluated(withSpec({ tolerations: [{ key: disk, operator: 'Exists' }] }), memory), evicted);
    assert.equal(evaluated(withSpec(critical), { pressures: ['DiskPressure'] }), 'admit');
  });
});

describe('several reasons for a rejection', () => {
  const sysctlProblem = 'forbidden sysctl';
  const appArmorProblem = 'Cannot enforce AppArmor: AppArmor is not enabled on the host';
  const allocation = { reason: 'TopologyAffinityError', message: 'no' };
  const all = {
    pressures: ['DiskPressure'],
    sysctlProblem,
    allocation,
    appArmorProblem,
    isShuttingDown: true,
  };
  const pod = aPod({ spec: { nodeName: 'n2', nodeSelector: { zone: 'b' } } });
  const reasonOf = (facts: Partial<AdmissionFacts>, of = pod) => evaluated(of, facts).split(':')[0];

  it('reports the first reason of a rejection, in the order of the Go kubelet', () => {
    assert.equal(reasonOf(all), 'Evicted');
    assert.equal(reasonOf({ ...all, pressures: [] }), 'SysctlForbidden');
    assert.equal(reasonOf({ allocation: allocation, appArmorProblem }), 'TopologyAffinityError');
    assert.equal(reasonOf({ appArmorProblem, isShuttingDown: true }), 'NodeAffinity');
    assert.equal(reasonOf({ appArmorProblem, isShuttingDown: true }, aPod()), 'AppArmor');
    assert.equal(reasonOf({ isShuttingDown: true }, aPod()), 'NodeShutdown');
  });

  it('requests the allocation of exclusive resources, unless a check that comes first, such as that of sysctls, rejects the pod', () => {
    assert.equal(evaluated(pod, { allocation: 'pending', appArmorProblem }), 'allocate');
    assert.equal(reasonOf({ allocation: 'pending', sysctlProblem }), 'SysctlForbidden');
    assert.equal(evaluated(pod, { allocation: 'pending', standing: 'restored' }), 'admit');
  });

  it('checks for final rejections before it fetches the Node object, preempts or waits', () => {
    const elsewhere = withSpec({ nodeSelector: { zone: 'b' } });
    assert.equal(reasonOf({ appArmorProblem }, elsewhere), 'AppArmor');
    const big = asking({ cpu: '3' }, 'web', critical);
    assert.equal(
      reasonOf({ isShuttingDown: true, others: [asking({ cpu: '3' }, 'o')] }, big),
      'NodeShutdown',
    );
  });

  it('does not check AppArmor for a pod that has already run', () => {
    assert.equal(evaluated(aPod({ status: { phase: 'Running' } }), { appArmorProblem }), 'admit');
    assert.match(evaluated(aPod({ status: { phase: 'Pending' } }), { appArmorProblem }), /^AppArmor/);
  });

  it('never rejects a pod that a previous kubelet process ran, and rejects a pod that this process has admitted before only for a few reasons', () => {
    assert.equal(evaluated(pod, { ...all, standing: 'restored', node: undefined }), 'admit');
    const rest = [asking({ cpu: '3900m' }, 'o')];
    const before = { standing: 'admitted-before', others: rest } as const;
    const spec = { taints: [{ key: 'k', effect: 'NoExecute' }] };
    const asks = asking({ cpu: '1' }, 'web', { nodeSelector: { zone: 'b' } });
    assert.equal(evaluated(asks, { ...before, node: { ...node, spec } }), 'admit');
    assert.match(evaluated(withSpec({ nodeName: 'n2' }), before), /^NodeName/);
    assert.match(evaluated(asks, { ...before, sysctlProblem }), /^SysctlForbidden/);
  });
});

describe('admission of a critical pod', () => {
  const big = asking({ cpu: '3' }, 'web', critical);

  it('preempts pods for a critical pod if only resources are missing', () => {
    assert.equal(evaluated(big, { others: [asking({ cpu: '3' }, 'o')] }), 'preempt cpu: o');
  });

  it('rejects a critical pod for any other reason', () => {
    const elsewhere = { ...big, spec: { ...big.spec, nodeName: 'n2' } };
    assert.match(evaluated(elsewhere, { others: [asking({ cpu: '3' }, 'o')] }), /^NodeName: /);
  });

  it('rejects a critical pod if preemption cannot release enough resources', () => {
    assert.equal(
      evaluated(big, { others: [asking({ cpu: '3' }, 'o', critical)] }),
      'UnexpectedAdmissionError: Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 2080), ]',
    );
  });

  it('waits for terminating pods, and preempts only as many pods as are needed in addition', () => {
    const rest = [asking({ cpu: '2' }, 'a'), asking({ cpu: '1' }, 'b'), asking({ cpu: '500m' }, 'c')];
    assert.match(
      evaluated(big, { others: rest, ending: new Set([podUid('a'), podUid('b')]) }),
      /^wait-for-termination OutOfpods/,
    );
    assert.equal(evaluated(big, { others: rest, ending: new Set([podUid('a')]) }), 'preempt cpu: b');
  });
});
