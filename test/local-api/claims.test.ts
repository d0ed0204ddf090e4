import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';
import { json } from './volume-objects.ts';

const image = 'localhost/kubeling/busybox:1';
const nodeName = hostname().toLowerCase();
/**
 * The time limit for a pod start that is triggered by a change of the claim; it is shorter than the
 * ten seconds or more after which a failed sync is retried.
 */
const promptMs = 9_500;

function volume(name: string, source: object) {
  const terms = [
    { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [nodeName] }] },
  ];
  const nodeAffinity = { required: { nodeSelectorTerms: terms } };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: name,
      ...('local' in source ? { nodeAffinity } : {}),
      ...source,
    },
  };
}

const claimSpec = (name: string) => ({
  accessModes: ['ReadWriteOnce'],
  storageClassName: name,
  resources: { requests: { storage: '1Gi' } },
});

function claim(name: string) {
  const metadata = { name, namespace: 'default' };
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: claimSpec(name) };
}

function pod(
  name: string,
  script: string,
  more: { readonly mounts?: object[]; readonly spec?: object } = {},
) {
  const { mounts = [{ name: 'data', mountPath: '/data' }], spec } = more;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        { name: 'main', image, command: ['sh', '-c', `${script}; sleep 1000`], volumeMounts: mounts },
      ],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
      ...spec,
    },
  };
}

/** The tests use the real kubectl, the real containerd and real mounts. */
describe('persistent volume claims of pods on kubeling up', {
  timeout: 600_000,
  skip: withoutKubectl(),
}, () => {
  let cluster: LocalCluster;
  let disks: string;

  before(async () => {
    disks = await mkdtemp(join(tmpdir(), 'klg-disks-'));
    cluster = await LocalCluster.open();
  });

  after(async () => {
    // A pod still runs when the node is removed; the content of its volume must survive this.
    const left = await cluster?.leave();
    const content = await readFile(join(disks, 'last/canary'), 'utf8').catch(String);
    await rm(disks, { recursive: true, force: true });
    assert.deepEqual([left, content], [[], 'alive\n']);
  });

  async function disk(name: string): Promise<string> {
    const path = join(disks, name);
    await mkdir(path);
    await writeFile(join(path, 'canary'), 'alive\n');
    return path;
  }

  const mounted = async (path: string) => (await readFile('/proc/self/mountinfo', 'utf8')).includes(path);

  it('a static pod gets the volume that is defined beside it in the manifest directory', async () => {
    const path = await disk('beside');
    const name = `beside-${nodeName}`;
    await cluster.node.put(
      'beside.yaml',
      json(
        pod('beside', 'cat /data/canary; echo written > /data/note'),
        claim('beside'),
        volume('beside', { local: { path } }),
      ),
    );
    await cluster.until('the mirror pod', ['get', 'pod', name], (out) => out.includes('Running'));
    await cluster.until('what it reads', ['logs', name], (out) => out === 'alive\n');
    assert.equal(await readFile(join(path, 'note'), 'utf8'), 'written\n');
    assert.equal(await mounted('kubernetes.io~local-volume/beside'), true);
    await cluster.node.take('beside.yaml');
    await cluster.until('all of it to be deleted', ['get', 'pods,pv,pvc', '-o', 'name'], (out) => out === '');
    await cluster.node.until(
      'its mount to be removed',
      async () => !(await mounted('kubernetes.io~local-volume/beside')),
    );
    assert.equal(await readFile(join(path, 'canary'), 'utf8'), 'alive\n');
    assert.equal(await readFile(join(path, 'note'), 'utf8'), 'written\n');
  });

  it('a pod whose claim is not bound reports why it waits, and starts as soon as the claim is bound', async () => {
    const path = await disk('late');
    await cluster.apply(pod('late', 'cat /data/canary'));
    const events = ['get', 'events', '-o', 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}'];
    const why = 'failed to process volumes=[data]: error processing PVC default/late:';
    await cluster.until('the event', events, (out) =>
      out.includes(
        `FailedMount Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], ${why} failed to fetch PVC from API server: persistentvolumeclaims "late" not found`,
      ),
    );
    await cluster.until('its status', ['get', 'pod', 'late'], (out) => out.includes('ContainerCreating'));
    assert.match(await cluster.node.command('explain', 'late'), /persistentvolumeclaims "late" not found/);
    await cluster.apply(claim('late'));
    await cluster.until('the next event', events, (out) => out.includes(`${why} PVC is not bound`));
    const begun = performance.now();
    await cluster.apply(volume('late', { hostPath: { path } }));
    await cluster.ready('late');
    const tookMs = performance.now() - begun;
    assert.ok(tookMs < promptMs, `it took ${tookMs} ms`);
    assert.equal(await cluster.kubectl('logs', 'late'), 'alive\n');
    await cluster.kubectl('delete', 'pod', 'late');
    assert.equal(await readFile(join(path, 'canary'), 'utf8'), 'alive\n');
  });

  it('subPath, fsGroup and readOnly of the pod apply to the volume of a claim', async () => {
    const path = await disk('parts');
    await cluster.apply(
      volume('parts', { local: { path }, mountOptions: ['nosuid'] }),
      claim('parts'),
      pod('parts', 'id; touch /part/made; touch /read/refused || echo read-only', {
        mounts: [
          { name: 'data', mountPath: '/part', subPath: 'some/part' },
          { name: 'data', mountPath: '/read', readOnly: true },
        ],
        spec: { securityContext: { fsGroup: 4321, runAsUser: 1000 } },
      }),
    );
    await cluster.ready('parts');
    const log = await cluster.until('its termination message', ['logs', 'parts'], (out) =>
      out.includes('read-only'),
    );
    assert.match(log, /groups=.*4321/);
    const created = await stat(join(path, 'some/part/made'));
    assert.deepEqual([created.uid, created.gid], [1000, 4321]);
    assert.equal((await stat(join(path, 'canary'))).gid, 4321);
    await cluster.kubectl('delete', 'pod', 'parts');
    assert.equal(await readFile(join(path, 'canary'), 'utf8'), 'alive\n');
    assert.equal(await mounted('volume-subpaths/parts'), false);
  });

  it('a claim generated for a pod is deleted with the pod while its volume stays', async () => {
    const path = await disk('own');
    const ephemeral = { volumeClaimTemplate: { spec: claimSpec('own') } };
    await cluster.apply(
      volume('own', { local: { path } }),
      pod('own', 'cat /data/canary', { spec: { volumes: [{ name: 'data', ephemeral }] } }),
    );
    await cluster.ready('own');
    assert.equal(await cluster.kubectl('logs', 'own'), 'alive\n');
    assert.match(await cluster.kubectl('get', 'pvc', 'own-data'), /Bound/);
    await cluster.kubectl('delete', 'pod', 'own');
    await cluster.until(
      'its claim to be deleted',
      ['get', 'pvc', '-o', 'name'],
      (out) => !out.includes('own-data'),
    );
    assert.match(await cluster.kubectl('get', 'pv', 'own'), /Released/);
    assert.equal(await readFile(join(path, 'canary'), 'utf8'), 'alive\n');
  });

  it('a claim for a volume of an unsupported type is rejected with the name of the type, and the pod can be deleted', async () => {
    const source = { iscsi: { targetPortal: '127.0.0.1:3260', iqn: 'iqn.2001-04.com.example:disk', lun: 0 } };
    await cluster.apply(volume('far', source), claim('far'), pod('far', 'true'));
    const message =
      'MountVolume.NewMounter initialization failed for volume "far" : volumes of the kind iscsi are not supported by this node yet';
    await cluster.until('the event', ['get', 'events'], (out) => out.includes(message));
    await cluster.kubectl('delete', 'pod', 'far');
  });

  it('a pod keeps the volume of its claim when kubeling is killed and the containers restart', async () => {
    const path = await disk('last');
    const script = 'cat /data/canary; until [ -e /end ]; do sleep 0.1; done; exit 1';
    await cluster.apply(volume('last', { local: { path } }), claim('last'), pod('last', script));
    await cluster.ready('last');
    await cluster.node.end('SIGKILL');
    await cluster.node.start();
    // The metrics include an adopted volume as if it had just been mounted.
    const capacity =
      /^kubelet_volume_stats_capacity_bytes\{namespace="default",persistentvolumeclaim="last"\} (.+)$/m;
    const total =
      /^volume_manager_total_volumes\{plugin_name="kubernetes.io\/local-volume",state="actual_state_of_world"\} 1$/m;
    await cluster.node.until('the metrics of its volume', async () => {
      const text = await cluster.node.get('/metrics');
      return total.test(text) && Number(capacity.exec(text)?.[1]) > 0;
    });
    const restarts = ['get', 'pod', 'last', '-o', 'jsonpath={.status.containerStatuses[0].restartCount}'];
    assert.equal(await cluster.kubectl(...restarts), '0');
    await cluster.kubectl('exec', 'last', '--', 'touch', '/end');
    await cluster.until('its restart', restarts, (out) => out === '1');
    await cluster.ready('last');
    assert.equal(await cluster.kubectl('exec', 'last', '--', 'cat', '/data/canary'), 'alive\n');
  });
});
