import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import type { Node, Taint, Toleration } from '../../kinds/index.ts';
import { annotations, type Pod, podUid } from '../../pods/index.ts';
import { type AdmissionFacts, judgePod } from './judge-pod.ts';

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

/** `admit`, or the reason and the message, or what else is to be done. */
function judged(pod: Pod, facts: Partial<AdmissionFacts> = {}): string {
  const judgement = judgePod(pod, { ...calm, ...facts });
  if (judgement.kind === 'make-room') {
    const { victims, resource } = judgement.preemption;
    return `make-room ${resource}: ${victims.map(({ metadata }) => metadata.name).join(' ')}`;
  }
  if (judgement.kind === 'admit' || judgement.kind === 'allot') return judgement.kind;
  const { reason, message } = judgement.refusal;
  return `${judgement.kind === 'refuse' ? '' : `${judgement.kind} `}${reason}: ${message}`;
}

const withSpec = (spec: PodParts['spec']) => aPod({ spec: { ...spec } });
const critical = { priority: 2_000_000_000 };
const affinityMessage = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";

describe('room on the node', () => {
  const used = asking({ cpu: '3838m', memory: '512Mi', 'example.com/gpu': '1' }, 'other');

  it('is refused by resource, in milli cores and bytes', () => {
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
      // Of what the node does not have at all, the cluster keeps count.
      [{ 'example.com/fpga': '9' }, 'admit'],
      [
        { cpu: '4', memory: '2Gi' },
        "OutOfcpu: Node didn't have enough resource: cpu, requested: 4000, used: 3838, capacity: 3920",
      ],
    ];
    for (const [requests, expected] of rows)
      assert.equal(judged(asking(requests), { others: [used] }), expected);
  });

  it('is limited in pods too, whatever they ask for', () => {
    const others = ['a', 'b', 'c'].map((name) => asking({}, name));
    assert.equal(
      judged(asking({ cpu: '9' }), { others }),
      "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    );
    assert.equal(judged(asking({}), { others: others.slice(1) }), 'admit');
  });

  it('counts what a class of runtime costs, and not what claims stand for', () => {
    const heavy = asking({ cpu: '3900m' }, 'web', { overhead: { cpu: '21m' } });
    assert.match(judged(heavy), /^OutOfcpu: .*requested: 3921,/);
    for (const resourceName of ['example.com/gpu', 'deviceclass.resource.kubernetes.io/gpu']) {
      const gpus = asking({ [resourceName]: '3' });
      const mapping = { containerName: 'main', resourceName, requestName: 'r' };
      const extendedResourceClaimStatus = { requestMappings: [mapping], resourceClaimName: 'c' };
      assert.match(judged(gpus), new RegExp(`^OutOf${resourceName}`));
      assert.equal(judged({ ...gpus, status: { extendedResourceClaimStatus } }), 'admit');
    }
  });

  it('is waited for when pods that are ending will leave enough of it', () => {
    const ending = new Set([used.metadata.uid]);
    assert.match(judged(asking({ cpu: '100m' }), { others: [used], ending }), /^wait-for-room OutOfcpu: /);
    assert.match(judged(asking({ cpu: '4' }), { others: [used], ending }), /^OutOfcpu: /);
    const ports = { containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort: 80 }] }] };
    const holder = asking({}, 'holder', ports);
    const judgement = judged(withSpec(ports), { others: [holder], ending: new Set([holder.metadata.uid]) });
    assert.match(judgement, /^wait-for-room NodePorts: /);
  });
});

describe('labels, names, ports and taints of the node', () => {
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

  it('are asked for anew before a pod is refused for labels alone', () => {
    assert.equal(judged(withSpec({ nodeSelector: { zone: 'a' } })), 'admit');
    const elsewhere = withSpec({ nodeSelector: { zone: 'b' } });
    assert.equal(judged(elsewhere), `ask-node NodeAffinity: ${affinityMessage}`);
    const other = withSpec({ nodeSelector: { zone: 'b' }, nodeName: 'n2' });
    assert.equal(judged(other), `NodeAffinity: ${affinityMessage}`);
  });

  it('match required terms, of which one is enough', () => {
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
    for (const pod of matching) assert.equal(judged(pod), 'admit', JSON.stringify(pod.spec.affinity));
  });

  it('do not match terms that ask for something else, for nothing, or for nonsense', () => {
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
      assert.match(judged(pod), /^ask-node NodeAffinity/, JSON.stringify(pod.spec.affinity));
  });

  it('decide by name', () => {
    assert.equal(judged(withSpec({ nodeName: 'n1' })), 'admit');
    assert.equal(
      judged(withSpec({ nodeName: 'n2' })),
      "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name",
    );
  });

  it('reject a pod whose host port the node itself uses, at once', () => {
    const nodePortProblem = 'host port 10250 is used by the node itself';
    assert.equal(judged(asking({}), { nodePortProblem }), `NodePorts: ${nodePortProblem}`);
  });

  it('let only one have a port of the machine', () => {
    const port = (hostPort: number, hostIP?: string, protocol?: string) =>
      asking({}, `p${hostPort}${hostIP}${protocol}`, {
        containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort, hostIP, protocol }] }],
      });
    const taken =
      "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    const beside = (pod: Pod, other: Pod) => judged(pod, { others: [other] });
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

  it('keep away who does not tolerate what would drive him out', () => {
    const refused =
      "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    const on = (taint: Taint, tolerations: readonly Toleration[], facts: Partial<AdmissionFacts> = {}) =>
      judged(withSpec({ tolerations }), { node: { ...node, spec: { taints: [taint] } }, ...facts });
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
    assert.equal(judged(file, { node: { ...node, spec: { taints: [taint] } } }), 'admit');
  });
});

describe('rules of the system', () => {
  it('refuse what is made for another one', () => {
    const labels = (os: string) => aPod({ metadata: { labels: { 'kubernetes.io/os': os } } });
    assert.equal(judged(labels('linux')), 'admit');
    assert.equal(
      judged(labels('windows')),
      "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    );
    assert.equal(judged(withSpec({ os: { name: 'linux' } })), 'admit');
    assert.equal(
      judged(withSpec({ os: { name: 'windows' } })),
      "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
    );
  });

  it('refuse strict groups where the runtime cannot keep them', () => {
    const strict = withSpec({ securityContext: { supplementalGroupsPolicy: 'Strict' } });
    assert.equal(judged(strict), 'admit');
    assert.equal(
      judged(strict, { strictGroups: false }),
      'SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node',
    );
    const merge = withSpec({ securityContext: { supplementalGroupsPolicy: 'Merge' } });
    assert.equal(judged(merge, { strictGroups: false }), 'admit');
  });

  it('refuse everything where nothing is known of the node', () => {
    assert.equal(judged(aPod(), { node: undefined }), 'InvalidNodeInfo: Kubelet cannot get node info.');
  });

  it('refuse features that are off or were not declared', () => {
    const sized = withSpec({ resources: { requests: { cpu: '1' } } });
    assert.equal(judged(sized), 'admit');
    assert.equal(
      judged(sized, { podLevelResources: false }),
      'PodLevelResourcesNotSupported: PodLevelResources feature gate is disabled',
    );
    const both = withSpec({
      hostNetwork: true,
      hostUsers: false,
      containers: [{ name: 'main', restartPolicyRules: [{ action: 'RestartAllContainers' }] }],
    });
    assert.equal(
      judged(both),
      'PodFeatureUnsupported: Pod requires node features that are not available: RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport',
    );
    assert.equal(judged(both, { declaredFeatures: undefined }), 'admit');
    const declaredFeatures = new Set([
      'RestartAllContainersOnContainerExits',
      'UserNamespacesHostNetworkSupport',
    ]);
    assert.equal(judged(both, { declaredFeatures }), 'admit');
  });

  it('refuse everything when the node shuts down', () => {
    assert.equal(
      judged(aPod(), { isShuttingDown: true }),
      'NodeShutdown: Pod was rejected as the node is shutting down.',
    );
  });
});

describe('a node that is short of something', () => {
  const evicted = 'Evicted: The node had condition: [MemoryPressure]. ';
  const memory = { pressures: ['MemoryPressure'] };

  it('takes those that have asked for memory, as long as it is only that', () => {
    assert.equal(judged(asking({ memory: '1Mi' }), memory), 'admit');
    assert.equal(judged(aPod(), memory), evicted);
    assert.equal(
      judged(asking({ memory: '1Mi' }), { pressures: ['DiskPressure', 'MemoryPressure'] }),
      'Evicted: The node had condition: [DiskPressure MemoryPressure]. ',
    );
  });

  it('takes those that tolerate it, and those that matter', () => {
    const key = 'node.kubernetes.io/memory-pressure';
    assert.equal(judged(withSpec({ tolerations: [{ key, operator: 'Exists' }] }), memory), 'admit');
    const disk = 'node.kubernetes.io/disk-pressure';
    assert.equal(judged(withSpec({ tolerations: [{ key: disk, operator: 'Exists' }] }), memory), evicted);
    assert.equal(judged(withSpec(critical), { pressures: ['DiskPressure'] }), 'admit');
  });
});

describe('of several reasons', () => {
  const sysctlProblem = 'forbidden sysctl';
  const appArmorProblem = 'Cannot enforce AppArmor: AppArmor is not enabled on the host';
  const allotment = { reason: 'TopologyAffinityError', message: 'no' };
  const all = {
    pressures: ['DiskPressure'],
    sysctlProblem,
    allotment,
    appArmorProblem,
    isShuttingDown: true,
  };
  const pod = aPod({ spec: { nodeName: 'n2', nodeSelector: { zone: 'b' } } });
  const reasonOf = (facts: Partial<AdmissionFacts>, of = pod) => judged(of, facts).split(':')[0];

  it('the first counts, in the order users know', () => {
    assert.equal(reasonOf(all), 'Evicted');
    assert.equal(reasonOf({ ...all, pressures: [] }), 'SysctlForbidden');
    assert.equal(reasonOf({ allotment, appArmorProblem }), 'TopologyAffinityError');
    assert.equal(reasonOf({ appArmorProblem, isShuttingDown: true }), 'NodeAffinity');
    assert.equal(reasonOf({ appArmorProblem, isShuttingDown: true }, aPod()), 'AppArmor');
    assert.equal(reasonOf({ isShuttingDown: true }, aPod()), 'NodeShutdown');
  });

  it('what has to be set aside first is, unless it is refused before that', () => {
    assert.equal(judged(pod, { allotment: 'awaited', appArmorProblem }), 'allot');
    assert.equal(reasonOf({ allotment: 'awaited', sysctlProblem }), 'SysctlForbidden');
    assert.equal(judged(pod, { allotment: 'awaited', standing: 'restored' }), 'admit');
  });

  it('what is certain counts before anybody is asked, ended or waited for', () => {
    const elsewhere = withSpec({ nodeSelector: { zone: 'b' } });
    assert.equal(reasonOf({ appArmorProblem }, elsewhere), 'AppArmor');
    const big = asking({ cpu: '3' }, 'web', critical);
    assert.equal(
      reasonOf({ isShuttingDown: true, others: [asking({ cpu: '3' }, 'o')] }, big),
      'NodeShutdown',
    );
  });

  it('AppArmor is no question for a pod that has run', () => {
    assert.equal(judged(aPod({ status: { phase: 'Running' } }), { appArmorProblem }), 'admit');
    assert.match(judged(aPod({ status: { phase: 'Pending' } }), { appArmorProblem }), /^AppArmor/);
  });

  it('none counts against a pod that lives here, and few against one that was taken before', () => {
    assert.equal(judged(pod, { ...all, standing: 'restored', node: undefined }), 'admit');
    const others = [asking({ cpu: '3900m' }, 'o')];
    const before = { standing: 'admitted-before', others } as const;
    const spec = { taints: [{ key: 'k', effect: 'NoExecute' }] };
    const asks = asking({ cpu: '1' }, 'web', { nodeSelector: { zone: 'b' } });
    assert.equal(judged(asks, { ...before, node: { ...node, spec } }), 'admit');
    assert.match(judged(withSpec({ nodeName: 'n2' }), before), /^NodeName/);
    assert.match(judged(asks, { ...before, sysctlProblem }), /^SysctlForbidden/);
  });
});

describe('a critical pod', () => {
  const big = asking({ cpu: '3' }, 'web', critical);

  it('has others end for it when only room is missing', () => {
    assert.equal(judged(big, { others: [asking({ cpu: '3' }, 'o')] }), 'make-room cpu: o');
  });

  it('is refused for anything else', () => {
    const elsewhere = { ...big, spec: { ...big.spec, nodeName: 'n2' } };
    assert.match(judged(elsewhere, { others: [asking({ cpu: '3' }, 'o')] }), /^NodeName: /);
  });

  it('is refused where nobody can make room', () => {
    assert.equal(
      judged(big, { others: [asking({ cpu: '3' }, 'o', critical)] }),
      'UnexpectedAdmissionError: Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 2080), ]',
    );
  });

  it('waits for those that are ending, and has only as many others end as are needed besides', () => {
    const others = [asking({ cpu: '2' }, 'a'), asking({ cpu: '1' }, 'b'), asking({ cpu: '500m' }, 'c')];
    assert.match(
      judged(big, { others, ending: new Set([podUid('a'), podUid('b')]) }),
      /^wait-for-room OutOfpods/,
    );
    assert.equal(judged(big, { others, ending: new Set([podUid('a')]) }), 'make-room cpu: b');
  });
});
