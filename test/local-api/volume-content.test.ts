import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseQuantity, quantityValue, realClock } from '../../src/lib/index.ts';
import { HostVolumeFiles } from '../../src/volumes/index.ts';
import { ApiCaller } from '../chaos/api-caller.ts';
import { numberLines, readerLooks, readerScript } from '../chaos/volume-reader.ts';
import { PayloadWorld, podWith } from '../fakes/payload-world.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';

const image = 'localhost/kubeling/busybox:1';
const namespace = '/api/v1/namespaces/default';
const updates = 1_000;
const lines = 200;

const reading = readerScript([{ name: 'config', lines }]);

const data = (number: number) => {
  const text = numberLines(number, lines);
  return { a: text, b: text };
};

const waiting = 'trap "exit 0" TERM; while true; do sleep 0.1; done';

function podOf(
  name: string,
  script: string,
  volumes: readonly { readonly name: string; readonly [kind: string]: unknown }[],
) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image,
          command: ['sh', '-c', script],
          volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })),
        },
      ],
      volumes,
    },
  };
}

/** The tests use the real kubectl, the real containerd and real mounts. */
describe('content of configMap, secret and downward API volumes on kubeling up', {
  timeout: 600_000,
  skip: withoutKubectl(),
}, () => {
  let cluster: LocalCluster;
  let api: ApiCaller;

  before(async () => {
    cluster = await LocalCluster.open();
    api = await ApiCaller.open(join(cluster.node.dataDir, 'kubeconfig'));
  });

  after(async () => {
    api?.[Symbol.dispose]();
    assert.deepEqual(await cluster?.leave(), []);
  });

  async function create(path: string, object: object): Promise<string> {
    const { status, body } = await api.call('POST', `${namespace}/${path}`, object);
    assert.equal(status, 201, JSON.stringify(body));
    return (body['metadata'] as { readonly uid: string }).uid;
  }

  const hasRead = async (said: string, number: number) => (await readerLooks(said)).numbers[0] === number;
  const volumeOf = (uid: string, kind: string, name: string) =>
    join(cluster.node.dataDir, 'kubelet/pods', uid, 'volumes', `kubernetes.io~${kind}`, name);

  it('a volume changes atomically: during 1,000 API writes a reader in the pod observes no torn, missing or older file', async (t) => {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'numbers' } };
    await create('configmaps', { ...map, data: data(0) });
    const volumes = [
      { name: 'config', configMap: { name: 'numbers' } },
      { name: 'said', emptyDir: {} },
    ];
    const uid = await create('pods', podOf('reader', reading, volumes));
    await cluster.ready('reader');
    const [config, said] = [volumeOf(uid, 'configmap', 'config'), volumeOf(uid, 'empty-dir', 'said')];
    await cluster.node.until('the first read', async () => (await readerLooks(said)).count > 0);
    const versions = new Set<string>();
    for (let number = 1; number <= updates; number++) {
      const { status, body } = await api.call('PATCH', `${namespace}/configmaps/numbers`, {
        data: data(number),
      });
      assert.equal(status, 200, JSON.stringify(body));
      versions.add(await readlink(join(config, '..data')));
    }
    await cluster.node.until('the last version to be read', () => hasRead(said, updates));
    const { wrong, count } = await readerLooks(said);
    assert.equal(wrong, '');
    // The kubelet merges updates in quick succession, so the reader does not observe each of them.
    assert.ok(versions.size > 1);
    t.diagnostic(`${count} reads, ${versions.size} versions of the volume or more`);
    const kept = (await readdir(config)).filter((name) => name.startsWith('..'));
    // The volume directory has the ..data link, its target, and briefly the previous target for
    // readers that still use it.
    assert.ok(kept.length <= 3, kept.join(' '));
    await cluster.kubectl('delete', 'pod', 'reader');
  });

  it('a volume changes atomically in each of 1,000 volume writes while a container reads it', async (t) => {
    const podsDir = join(cluster.scratch, 'pods');
    const environment = new PayloadWorld(new HostVolumeFiles(realClock()), podsDir, realClock());
    const [written, filled] = [podWith([{ name: 'cm', configMap: { name: 'cm' } }]), environment.volumes()];
    const write = async (number: number) => {
      environment.setConfigMap('cm', data(number));
      assert.deepEqual(await filled.prepare(written, environment.signal), []);
    };
    await write(0);
    const path = filled.of(written).get('cm')?.hostPath ?? '';
    const volumes = [
      { name: 'config', hostPath: { path } },
      { name: 'said', emptyDir: {} },
    ];
    const uid = await create('pods', podOf('hasty', reading, volumes));
    await cluster.ready('hasty');
    const output = volumeOf(uid, 'empty-dir', 'said');
    await cluster.node.until('the first read', async () => (await readerLooks(output)).count > 0);
    const { count: before } = await readerLooks(output);
    const versions = new Set<string>();
    for (let number = 1; number <= updates; number++) {
      await write(number);
      versions.add(await readlink(join(path, '..data')));
    }
    assert.equal(versions.size, updates);
    await cluster.node.until('the last version to be read', () => hasRead(output, updates));
    const { wrong, count } = await readerLooks(output);
    assert.equal(wrong, '');
    assert.ok(count > before + 10, `${count} reads, ${before} of them before`);
    t.diagnostic(`${count - before} reads`);
    await cluster.kubectl('delete', 'pod', 'hasty');
  });

  /** Files on the disk of the node that contain the text; memory-backed files are not searched. */
  function onDisk(text: string): readonly string[] {
    const { dataDir } = cluster.node;
    const find = [
      '-c',
      'find "$0" -xdev -type f -print0 | xargs -0 grep -slF -e "$1" || true',
      dataDir,
      text,
    ];
    const found = execFileSync('sh', find, { encoding: 'utf8' }).split('\n');
    // Only the store of the embedded API may contain the secret on disk.
    return found.filter((path) => path !== '' && !path.startsWith(join(dataDir, 'api/store/')));
  }

  it('an ephemeral container of a running pod can mount the volumes of the pod', async () => {
    const volumes = [
      { name: 'disk', emptyDir: {} },
      { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '5Mi' } },
      { name: 'late', configMap: { name: 'late' } },
    ];
    const { spec, ...pod } = podOf('watched', waiting, volumes);
    const containers = spec.containers.map((container) => ({ ...container, volumeMounts: [] }));
    await create('pods', { ...pod, spec: { ...spec, containers } });
    await cluster.ready('watched');
    const container = {
      name: 'watcher',
      image,
      command: ['sh', '-c', waiting],
      volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
    };
    const patch = JSON.stringify({ spec: { ephemeralContainers: [container] } });
    await cluster.kubectl('patch', 'pod', 'watched', '--subresource=ephemeralcontainers', '-p', patch);
    const isTold = (out: string) => out.includes('configmap "late" not found');
    await cluster.until('it to wait', ['get', 'events', '-o', 'jsonpath={..message}'], isTold);
    const stateOf = '-o=jsonpath={.status.ephemeralContainerStatuses[0].state}';
    assert.match(await cluster.kubectl('get', 'pod', 'watched', stateOf), /waiting/);
    await cluster.kubectl('create', 'configmap', 'late', '--from-literal=key=here');
    const runs = (out: string) => out.includes('running');
    await cluster.until('it to run', ['get', 'pod', 'watched', stateOf], runs);
    const inside = ['exec', 'watched', '-c', 'watcher', '--', 'sh', '-c'];
    const looking = 'cat /late/key; echo; stat -c %a /disk /memory; df -k /memory | tail -1';
    const output = await cluster.kubectl(...inside, looking);
    assert.match(output, /^here\n777\n1777\ntmpfs +5120 /);
  });

  it('a container without a limit gets the node allocatable as its limit from the downward API', async () => {
    const names = ['cpu', 'memory', 'ephemeral-storage'];
    const items = names.map((name) => ({
      path: name,
      resourceFieldRef: { containerName: 'main', resource: `limits.${name}` },
    }));
    await create('pods', podOf('unlimited', waiting, [{ name: 'limits', downwardAPI: { items } }]));
    await cluster.ready('unlimited');
    const files = names.map((name) => `/limits/${name}`);
    const output = await cluster.kubectl('exec', 'unlimited', '--', 'tail', '-n', '+1', '-q', ...files);
    const node = JSON.parse(
      await cluster.kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].status.allocatable}'),
    );
    const amounts = names.map((name) => quantityValue(parseQuantity(node[name])));
    assert.equal(output, amounts.join(''));
  });

  it('secrets are never written to disk, also when kubeling is killed and restarted', async () => {
    const canary = 'canary-7d0c4e1b95';
    await create('secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'hidden' },
      stringData: { key: canary },
    });
    const known = 'known-2f61a7c0d8';
    await create('configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'shown' },
      data: { key: known },
    });
    const sources = [
      { serviceAccountToken: { path: 'token', expirationSeconds: 600 } },
      { secret: { name: 'hidden' } },
    ];
    const volumes = [
      { name: 'secret', secret: { secretName: 'hidden' } },
      { name: 'both', projected: { sources } },
      { name: 'plain', configMap: { name: 'shown' } },
    ];
    const uid = await create('pods', podOf('keeper', waiting, volumes));
    await cluster.ready('keeper');
    const read = (path: string) => cluster.kubectl('exec', 'keeper', '--', 'cat', path);
    const token = await read('/both/token');
    assert.match(token, /^[\w-]+\.[\w-]+\.[\w-]+$/);
    const part = (index: number) => token.split('.')[index] ?? '';
    const forms = [canary, Buffer.from(canary).toString('base64'), part(1), part(2)];
    const look = () => assert.deepEqual(forms.flatMap(onDisk), []);
    look();
    await cluster.node.end('SIGKILL');
    look();
    await cluster.node.start();
    assert.equal(await read('/secret/key'), canary);
    assert.equal(await read('/both/key'), canary);
    // Proves that the search finds files: content that is not secret is on the disk.
    assert.ok(onDisk(known).length > 0);
    look();
    for (const [kind, name] of [
      ['secret', 'secret'],
      ['projected', 'both'],
    ] as const)
      assert.equal(
        execFileSync('stat', ['-f', '-c', '%T', volumeOf(uid, kind, name)], { encoding: 'utf8' }),
        'tmpfs\n',
      );
    await cluster.kubectl('delete', 'pod', 'keeper');
    look();
    const metrics = await cluster.node.get('/metrics');
    for (const operation of ['volume_mount', 'volume_unmount']) {
      const labels = `volume_plugin="kubernetes.io/secret",operation_name="${operation}",status="success",migrated="false"`;
      const count = new RegExp(`^storage_operation_duration_seconds_count\\{${labels}\\} [1-9]`, 'm');
      assert.match(metrics, count);
    }
  });
});
