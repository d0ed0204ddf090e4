import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../src/kinds/index.ts';
import { container, pod, podIsGone, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { goKubelet, noCluster, noGoKubelet } from './programs.ts';
import { SmallCluster } from './small-cluster.ts';

const exec = (...command: readonly string[]) => ({ exec: { command }, periodSeconds: 2 });

/**
 * A pod spec with features that a new kubelet must restore: init containers, sidecars, probes and
 * volumes.
 */
function richSpec(more: object = {}): object {
  const init = [
    container('first', {
      command: ['sh', '-c', 'echo first > /shared/first'],
      volumeMounts: mounts('shared'),
    }),
    container('side', { restartPolicy: 'Always', startupProbe: exec('true') }),
  ];
  const main = container('main', {
    env: [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
    resources: { requests: { cpu: 0.01, memory: '10M' }, limits: { cpu: '0.5', memory: '65536Ki' } },
    readinessProbe: exec('cat', '/shared/first'),
    livenessProbe: exec('true'),
    lifecycle: { postStart: { exec: { command: ['sh', '-c', 'echo started >> /shared/starts'] } } },
    volumeMounts: mounts('shared', 'memory', 'facts'),
  });
  const volumes = [
    { name: 'shared', emptyDir: {} },
    { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
    { name: 'facts', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
  ];
  return podSpec([main], { initContainers: init, volumes, ...more });
}

function mounts(...names: readonly string[]): readonly object[] {
  return names.map((name) => ({ name, mountPath: `/${name}` }));
}

describe('a node switches between kubeling and the Go kubelet', {
  skip: noCluster() || noGoKubelet(),
  timeout: 900_000,
}, () => {
  let cluster: SmallCluster;
  const names: string[] = [];

  before(async () => {
    cluster = await SmallCluster.open({}, { kubelet: goKubelet() });
  });

  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  async function runApiPods(prefix: string): Promise<void> {
    const { plane } = cluster;
    const token = { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } };
    const words = { name: 'words', configMap: { name: 'words' } };
    const reader = container('main', { volumeMounts: mounts('words', 'token') });
    await plane.apply(
      pod(`${prefix}-rich`, richSpec()),
      pod(`${prefix}-reader`, podSpec([reader], { volumes: [words, token] })),
      pod(`${prefix}-shared`, podSpec([container('a'), container('b')], { shareProcessNamespace: true })),
    );
    await settle(`${prefix}-rich`, `${prefix}-reader`, `${prefix}-shared`);
  }

  async function runStaticPods(prefix: string): Promise<void> {
    const { node } = cluster;
    await node.put(
      `${prefix}-rich.yaml`,
      pod(`${prefix}-rich`, richSpec({ priorityClassName: 'system-node-critical' })),
    );
    await node.put(
      `${prefix}-host.json`,
      pod(`${prefix}-host`, podSpec([container('main')], { hostNetwork: true })),
    );
    await settle(`${prefix}-rich-${node.name}`, `${prefix}-host-${node.name}`);
  }

  async function settle(...pods: readonly string[]): Promise<void> {
    for (const name of pods) await cluster.ready(name);
    names.push(...pods);
  }

  /**
   * Returns what a container restart would change: containers and sandboxes with their attempts,
   * and the API objects.
   */
  async function picture(): Promise<readonly object[]> {
    const pictures = names.map(async (name) => {
      const { metadata, status } = await cluster.ready(name);
      const containers = (await cluster.node.containersOf(name)).map(
        ({ id, state, podSandboxId, labels, annotations }) => {
          const { 'io.kubernetes.container.name': container, 'io.kubernetes.pod.uid': uid } = labels;
          const restarts = annotations['io.kubernetes.container.restartCount'];
          return { container, id, state, podSandboxId, uid, restarts };
        },
      );
      return {
        name,
        uid: metadata?.uid,
        hash: metadata?.annotations?.['kubernetes.io/config.hash'],
        mirror: metadata?.annotations?.['kubernetes.io/config.mirror'],
        source: metadata?.annotations?.['kubernetes.io/config.source'],
        containers: containers.sort((a, b) => a.id.localeCompare(b.id)),
        restarts: restartsOf(status),
        podIP: status?.podIP,
      };
    });
    return await Promise.all(pictures);
  }

  function restartsOf(status: Pod['status']): readonly (readonly [string, number])[] {
    const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
    return all.map(({ name, restartCount }) => [name, restartCount] as const);
  }

  /**
   * Waits until the kubelet has synced all pods: it has run new pods of both sources and removed
   * them, which requires that the existing pods were evaluated.
   */
  async function lived(): Promise<void> {
    const { plane, node } = cluster;
    await plane.apply(pod('passing'));
    await node.put('passing-by.yaml', pod('passing-by'));
    await cluster.ready('passing');
    await cluster.ready(`passing-by-${node.name}`);
    await plane.kubectl('delete', 'pod', 'passing', '--wait=false');
    await node.take('passing-by.yaml');
    for (const name of ['passing', `passing-by-${node.name}`]) {
      await podIsGone(plane, name);
      await cluster.noContainersOf(name);
    }
  }

  /**
   * Returns since when each API pod is Ready; a kubelet does not restore these times for static
   * pods.
   */
  async function readySince(): Promise<readonly (string | undefined)[]> {
    const ofApi = names.filter((name) => !name.endsWith(cluster.node.name));
    const pods = await Promise.all(ofApi.map((name) => cluster.ready(name)));
    return pods.map(
      ({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime,
    );
  }

  async function changeTo(kubelet: string): Promise<void> {
    const before = await picture();
    const since = await readySince();
    await cluster.node.changeTo(kubelet);
    await cluster.node.ready();
    await lived();
    assert.deepEqual(await picture(), before);
    // The Go kubelet does not restore the readiness of recently started containers, so the Ready
    // times are compared only after a switch to kubeling.
    if (kubelet === 'kubeling') assert.deepEqual(await readySince(), since);
    const starts = await cluster.plane.kubectl(
      'exec',
      'go-rich',
      '-c',
      'main',
      '--',
      'cat',
      '/shared/starts',
    );
    assert.equal(starts, 'started\n', 'a hook must not have run again');
  }

  it('runs pods of the API and of manifests under the Go kubelet', async () => {
    await cluster.plane.kubectl('create', 'configmap', 'words', '--from-literal=a=b');
    await runApiPods('go');
    await runStaticPods('go');
  });

  it('keeps the same containers and mirror pods after a switch to kubeling', async () => {
    await changeTo('kubeling');
  });

  it('runs more pods under kubeling', async () => {
    await runApiPods('ours');
    await runStaticPods('ours');
  });

  it('keeps all containers after a switch back to the Go kubelet', async () => {
    await changeTo(goKubelet());
  });

  it('keeps all containers after another switch to kubeling', async () => {
    await changeTo('kubeling');
  });

  it('terminates all pods normally, whichever kubelet started them', async () => {
    const { plane, node } = cluster;
    for (const prefix of ['go', 'ours']) {
      await plane.kubectl(
        'delete',
        'pod',
        `${prefix}-rich`,
        `${prefix}-reader`,
        `${prefix}-shared`,
        '--wait=false',
      );
      await node.take(`${prefix}-rich.yaml`);
      await node.take(`${prefix}-host.json`);
    }
    for (const name of names) {
      await podIsGone(plane, name);
      await cluster.noContainersOf(name);
    }
    await patiently('all sandboxes to be gone', async () => {
      const { items } = await node.cri.listPodSandbox({}, new AbortController().signal);
      return items.length === 0 ? true : undefined;
    });
  });
});
