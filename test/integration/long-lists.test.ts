import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, PodSpec, PodStatus } from '../../src/kinds/index.ts';
import { KindTable } from '../../src/kinds/index.ts';
import { claimNamesOf, configMapNamesOf, secretNamesOf } from '../../src/objects/index.ts';
import { withPodDefaults } from '../../src/pods/defaults/index.ts';
import {
  computeQosClass,
  heldLimits,
  type ObservedPod,
  type Pod,
  podLimits,
  podRequests,
} from '../../src/pods/index.ts';
import { validateStoredPod } from '../../src/pods/validation/index.ts';
import { computePodActions, podField, resourceField, restorePod } from '../../src/runtime/index.ts';
import { generatePodStatus, sameStatus } from '../../src/status/index.ts';
import { threadCpuMs } from '../chaos/thread-cpu.ts';
import { LocalPods } from '../fakes/local-pods.ts';
import { defaultRules } from '../fakes/manifests.ts';
import { anInstance, anObservedPod } from '../fakes/observed.ts';
import { aPod } from '../fakes/pods.ts';
import { aStatusContext } from '../fakes/status-context.ts';

const count = 10_000;
/**
 * The limit for the CPU time of one function; linear code needs a fraction of it, quadratic code
 * more than a minute.
 */
const maxMs = 2_000;

const times = <T>(make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const image = 'example/web:1';
const main: Container = { name: 'main', image };
const mainWith = (parts: Partial<Container>): Partial<PodSpec> => ({ containers: [{ ...main, ...parts }] });
const resources = (index: number) => {
  const amounts = { cpu: '1m', memory: '1Mi', [`example.com/r${index}`]: '1' };
  return { limits: amounts, requests: amounts };
};

/** Pod specs with 10,000 entries in one list. */
const specs: Readonly<Record<string, Partial<PodSpec>>> = {
  containers: { containers: times((index) => ({ name: `c${index}`, image, resources: resources(index) })) },
  'init containers': {
    containers: [main],
    initContainers: times((index) => ({ name: `i${index}`, image, resources: resources(index) })),
  },
  sidecars: {
    containers: [main],
    initContainers: times((index) => ({
      name: `s${index}`,
      image,
      restartPolicy: 'Always',
      resources: resources(index),
    })),
  },
  'resources of a container': mainWith({
    resources: { limits: Object.fromEntries(times((index) => [`example.com/r${index}`, '1'])) },
  }),
  variables: mainWith({ env: times((index) => ({ name: `n${index}`, value: 'v' })) }),
  'variables from sources': mainWith({
    envFrom: times((index) => ({ configMapRef: { name: `m${index}` } })),
  }),
  ports: mainWith({
    ports: times((index) => ({ containerPort: 1 + index, name: `p${index}`, protocol: 'TCP' })),
  }),
  'host ports': mainWith({
    ports: times((index) => ({ containerPort: 1 + index, hostPort: 1 + index, protocol: 'TCP' })),
  }),
  'volumes and mounts': {
    volumes: times((index) => ({ name: `v${index}`, emptyDir: {} })),
    ...mainWith({ volumeMounts: times((index) => ({ name: `v${index}`, mountPath: `/m/${index}` })) }),
  },
  'sources of a volume': {
    containers: [main],
    volumes: [
      { name: 'v', projected: { sources: times((index) => ({ configMap: { name: `m${index}` } })) } },
    ],
  },
  'items of a volume': {
    containers: [main],
    volumes: [
      {
        name: 'v',
        configMap: { name: 'm', items: times((index) => ({ key: `k${index}`, path: `p${index}` })) },
      },
    ],
  },
  tolerations: {
    containers: [main],
    tolerations: times((index) => ({ key: `k${index}`, operator: 'Exists' })),
  },
  'host aliases': {
    containers: [main],
    hostAliases: times((index) => ({ ip: '192.0.2.1', hostnames: [`h${index}`] })),
  },
  'pull secrets': { containers: [main], imagePullSecrets: times((index) => ({ name: `s${index}` })) },
  'readiness gates': {
    containers: [main],
    readinessGates: times((index) => ({ conditionType: `example.com/g${index}` })),
  },
  'scheduling gates': {
    containers: [main],
    schedulingGates: times((index) => ({ name: `example.com/g${index}` })),
  },
  'spread constraints': {
    containers: [main],
    topologySpreadConstraints: times((index) => ({
      maxSkew: 1,
      topologyKey: `k${index}`,
      whenUnsatisfiable: 'ScheduleAnyway',
    })),
  },
  'node selector': {
    containers: [main],
    nodeSelector: Object.fromEntries(times((index) => [`k${index}`, 'v'])),
  },
  sysctls: {
    containers: [main],
    securityContext: { sysctls: times((index) => ({ name: `net.a${index}`, value: '1' })) },
  },
  groups: { containers: [main], securityContext: { supplementalGroups: times((index) => index + 1) } },
  'DNS options': { containers: [main], dnsConfig: { options: times((index) => ({ name: `o${index}` })) } },
};

function observe(pod: Pod): ObservedPod {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  return anObservedPod({ containers: containers.map((container) => anInstance(container)) });
}

/**
 * Computations of the API and the kubelet on a pod spec; none of them calls the container runtime.
 */
const steps: Readonly<Record<string, (pod: Pod, observed: ObservedPod) => unknown>> = {
  validation: (pod) => validateStoredPod(pod as never, defaultRules, new KindTable()),
  defaulting: (pod) => withPodDefaults(pod as never, () => false),
  'creation by the API': (pod) => {
    using pods = new LocalPods();
    return pods.do({ verb: 'create', body: { metadata: { name: 'a' }, spec: pod.spec } });
  },
  'resource sums': (pod) => [podRequests(pod), podLimits(pod), heldLimits(pod), computeQosClass(pod)],
  references: (pod) => [secretNamesOf(pod), configMapNamesOf(pod), claimNamesOf(pod)],
  planning: (pod, observed) =>
    computePodActions(pod, observed, { liveness: () => undefined, startup: () => undefined }),
  status: (pod, observed) => {
    let previous: PodStatus = {};
    for (let round = 0; round < 2; round++) {
      const context = aStatusContext({ previous });
      const next = generatePodStatus({ ...pod, status: previous }, observed, context);
      sameStatus(previous, next);
      previous = next;
    }
  },
  'restored spec': (_pod, observed) => restorePod(observed),
  'values for containers': (pod) => {
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      podField(pod, { fieldPath: 'metadata.name' }, { podIps: [], hostIps: [] });
      const selector = { containerName: container.name, resource: 'requests.cpu' };
      resourceField(pod, main, selector, new Map());
    }
  },
};

for (const [what, spec] of Object.entries(specs))
  describe(`pod with ${count} entries in its ${what}`, () => {
    const pod = aPod({ spec });
    const observed = observe(pod);
    for (const [step, work] of Object.entries(steps))
      it(`${step} needs little CPU time for a pod with a long list`, (t) => {
        const before = threadCpuMs();
        try {
          work(pod, observed);
        } catch (error) {
          t.diagnostic(`rejected: ${String(error).slice(0, 100)}`);
        }
        const ms = threadCpuMs() - before;
        t.diagnostic(`${step}: ${ms.toFixed(0)} ms`);
        assert.ok(ms < maxMs, `took ${ms} ms`);
      });
  });

describe('update of a long list by an API client', () => {
  const maxUpdateMs = 700;
  const needsLittle = (work: () => void) => {
    const before = threadCpuMs();
    work();
    const ms = threadCpuMs() - before;
    assert.ok(ms < maxUpdateMs, `took ${ms} ms`);
  };

  it("an update of a long list in a pod's status needs little CPU time", () => {
    using pods = new LocalPods();
    const name = 'a';
    const containers = times((index) => ({ name: `c${index}`, image }));
    pods.do({ verb: 'create', body: { metadata: { name }, spec: { containers, restartPolicy: 'Never' } } });
    const status = {
      conditions: times((index) => ({ type: `example.com/c${index}`, status: 'True' })),
      containerStatuses: times((index) => ({
        name: `c${index}`,
        image,
        imageID: '',
        ready: false,
        restartCount: 0,
        state: { terminated: { exitCode: 1 } },
      })),
    };
    needsLittle(() => {
      for (let round = 0; round < 2; round++) {
        const body = { ...pods.pod(name), status };
        pods.do({ verb: 'update', name, subresource: 'status', body });
      }
    });
  });

  it('an update of the finalizers of a deleted object needs little CPU time', () => {
    using pods = new LocalPods();
    const name = 'a';
    const finalizers = Array.from({ length: 40_000 }, (_, index) => `example.com/f${index}`);
    pods.do({ verb: 'create', body: { metadata: { name, finalizers }, spec: { containers: [main] } } });
    pods.do({ verb: 'delete', name });
    needsLittle(() => {
      const pod = pods.pod(name);
      const metadata = { ...pod?.metadata, finalizers: finalizers.toReversed() };
      pods.do({ verb: 'update', name, body: { ...pod, metadata } });
    });
  });
});
