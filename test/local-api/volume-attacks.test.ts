import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiCaller } from '../chaos/api-caller.ts';
import { LocalCluster } from './local-cluster.ts';
import { withoutKubectl } from './tour-commands.ts';

const image = 'localhost/kubeling/busybox:1';
const podsPath = '/api/v1/namespaces/default/pods';
/** How long the race runs; an environment variable can make it longer. */
const attackMs = Number(process.env['KUBELING_ATTACK_SECONDS'] ?? 10) * 1_000;
const victimsAtOnce = 4;
const containersOfVictim = 4;

/**
 * A script that replaces a directory by a link that leads out of the volume, and then the link by
 * the directory, in a fast loop. A concurrent bind mount may create the missing directory, so the
 * script removes it.
 */
const swapping = [
  'cd /v; mkdir -p d; touch d/inside; ln -sfn "$OUTSIDE" l',
  'touch /results/attacking',
  'while true; do',
  '  mv -T d aside; until mv -T l d 2>/dev/null; do rm -rf d; done',
  '  mv -T d l; until mv -T aside d 2>/dev/null; do rm -rf d; done',
  'done',
].join('\n');

interface PodParts {
  readonly script: string;
  readonly mounts: readonly object[];
  readonly volumes: readonly object[];
  readonly containers?: number;
  readonly env?: Readonly<Record<string, string>>;
}

function podOf(name: string, { script, mounts, volumes, containers = 1, env = {} }: PodParts) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: Array.from({ length: containers }, (_, index) => ({
        name: `c${index}`,
        image,
        command: ['sh', '-c', script],
        env: Object.entries({ ...env, NAME: `${name}-${index}` }).map(([key, value]) => ({
          name: key,
          value,
        })),
        volumeMounts: mounts,
      })),
      volumes,
    },
  };
}

/** The tests use the real containerd and real mounts. */
describe('attacks on volumes by containers', { timeout: 600_000, skip: withoutKubectl() }, () => {
  let cluster: LocalCluster;
  let api: ApiCaller;
  let host: string;

  before(async () => {
    host = await mkdtemp(join(tmpdir(), 'klg-attack-'));
    for (const name of ['volume', 'outside', 'results']) await mkdir(join(host, name));
    await writeFile(join(host, 'outside/secret'), 'alive\n');
    cluster = await LocalCluster.open();
    api = await ApiCaller.open(join(cluster.node.dataDir, 'kubeconfig'));
  });

  after(async () => {
    api?.[Symbol.dispose]();
    const left = await cluster?.leave();
    const secret = await readFile(join(host, 'outside/secret'), 'utf8').catch(String);
    await rm(host, { recursive: true, force: true });
    assert.deepEqual([left, secret], [[], 'alive\n']);
  });

  const hostPath = (name: string) => ({ name, hostPath: { path: join(host, name), type: 'Directory' } });
  const shared = () => [hostPath('volume'), hostPath('results')];
  const results = { name: 'results', mountPath: '/results' };

  async function create(pod: object): Promise<void> {
    const { status, body } = await api.call('POST', podsPath, pod);
    assert.equal(status, 201, JSON.stringify(body));
  }

  async function remove(name: string): Promise<void> {
    await api.call('DELETE', `${podsPath}/${name}?gracePeriodSeconds=0`);
  }

  async function waitingReasons(name: string): Promise<readonly string[]> {
    const { body } = await api.call('GET', `${podsPath}/${name}`);
    const { containerStatuses = [] } = body['status'] as {
      readonly containerStatuses?: readonly {
        readonly state?: { readonly waiting?: { readonly reason?: string }; readonly terminated?: object };
      }[];
    };
    return containerStatuses.map(({ state }) =>
      state?.terminated === undefined ? (state?.waiting?.reason ?? 'running') : 'ended',
    );
  }

  /** Waits until every container has exited, or its status reports why it cannot start. */
  async function decided(name: string, count: number): Promise<readonly string[]> {
    let reasons: readonly string[] = [];
    await cluster.node.until(`${name} to be decided`, async () => {
      reasons = await waitingReasons(name);
      const over = reasons.filter((reason) => reason === 'ended' || reason.startsWith('CreateContainer'));
      return over.length === count;
    });
    return reasons;
  }

  it('CVE-2017-1002101: a subPath that is a link out of its volume starts no container and exposes no host path', async () => {
    await symlink(join(host, 'outside'), join(host, 'volume/link'));
    await symlink('/', join(host, 'volume/root'));
    for (const [name, subPath] of [
      ['link', 'link'],
      ['through', 'link/secret'],
      ['root', 'root/etc'],
    ] as const) {
      const mounts = [{ name: 'volume', mountPath: '/sub', subPath }, results];
      await create(podOf(name, { script: 'ls /sub > /results/$NAME', mounts, volumes: shared() }));
      assert.deepEqual(await decided(name, 1), ['CreateContainerConfigError'], name);
      const { body } = await api.call('GET', `${podsPath}/${name}`);
      assert.ok(!JSON.stringify(body['status']).includes(host), JSON.stringify(body['status']));
      await remove(name);
    }
    assert.deepEqual(await readdir(join(host, 'results')), []);
    for (const name of ['link', 'root']) await rm(join(host, 'volume', name));
  });

  it('CVE-2021-25741: a directory that becomes a link while containers start never leads out of the volume', async (t) => {
    const OUTSIDE = join(host, 'outside');
    const whole = [{ name: 'volume', mountPath: '/v' }, results];
    await create(podOf('attacker', { script: swapping, mounts: whole, volumes: shared(), env: { OUTSIDE } }));
    const seen = () => readdir(join(host, 'results'));
    await cluster.node.until('the attack to begin', async () => (await seen()).includes('attacking'));
    const mounts = [{ name: 'volume', mountPath: '/sub', subPath: 'd' }, results];
    const script = 'ls /sub > /results/$NAME';
    const end = performance.now() + attackMs;
    const outcomes = new Map<string, number>();
    let victims = 0;
    const attacked = async () => {
      while (performance.now() < end) {
        const name = `victim${victims++}`;
        await create(podOf(name, { script, mounts, volumes: shared(), containers: containersOfVictim }));
        for (const outcome of await decided(name, containersOfVictim))
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        await remove(name);
      }
    };
    await Promise.all(Array.from({ length: victimsAtOnce }, attacked));
    await remove('attacker');
    const found = (await seen()).filter((name) => name !== 'attacking');
    const texts = await Promise.all(found.map((name) => readFile(join(host, 'results', name), 'utf8')));
    assert.deepEqual(
      new Set(texts).difference(new Set(['', 'inside\n'])),
      new Set(),
      "the containers' output",
    );
    const reported = `${victims} pods: ${JSON.stringify([...outcomes])}, ${texts.length} of them read the volume`;
    assert.ok(texts.length > 0, reported);
    t.diagnostic(reported);
    for (const name of await seen()) await rm(join(host, 'results', name));
  });

  it('CVE-2017-1002102: containers cannot write to volumes that the kubelet fills', async () => {
    await cluster.kubectl('create', 'configmap', 'settings', '--from-literal=key=value');
    await cluster.kubectl('create', 'secret', 'generic', 'keys', '--from-literal=key=value');
    const fieldRef = { fieldPath: 'metadata.name' };
    const filled = [
      { name: 'config', configMap: { name: 'settings' } },
      { name: 'secret', secret: { secretName: 'keys' } },
      { name: 'downward', downwardAPI: { items: [{ path: 'key', fieldRef }] } },
      { name: 'projected', projected: { sources: [{ configMap: { name: 'settings' } }] } },
    ];
    const script = [
      'for at in config secret downward projected; do',
      '  [ -s /$at/key ] || echo "$at has no key"',
      '  touch /$at/new 2>/dev/null && echo "$at was written"',
      '  rm /$at/..data 2>/dev/null && echo "$at has lost its link"',
      '  ln -sfn / /$at/..data 2>/dev/null && echo "$at has another link"',
      'done > /results/said; mv /results/said /results/$NAME',
    ].join('\n');
    const mounts = [...filled.map(({ name }) => ({ name, mountPath: `/${name}` })), results];
    await create(podOf('writer', { script, mounts, volumes: [...filled, hostPath('results')] }));
    assert.deepEqual(await decided('writer', 1), ['ended']);
    assert.equal(await readFile(join(host, 'results/writer-0'), 'utf8'), '');
    await remove('writer');
  });

  it('CVE-2023-3676, CVE-2023-3955, CVE-2023-5528, CVE-2018-1002101: names in pod specs are not interpreted by a shell', async () => {
    const script = 'echo here > /sub/$NAME';
    const names = [
      '$(touch pwned)',
      '`touch pwned`',
      'a;touch pwned',
      'a\ntouch pwned',
      '-o suid',
      'it\'s "\\x',
    ];
    for (const [index, subPath] of names.entries()) {
      const mounts = [{ name: 'volume', mountPath: '/sub', subPath }];
      await create(podOf(`named${index}`, { script, mounts, volumes: [hostPath('volume')] }));
      assert.deepEqual(await decided(`named${index}`, 1), ['ended'], subPath);
      const written = join(host, 'volume', subPath, `named${index}-0`);
      assert.equal(await readFile(written, 'utf8'), 'here\n', subPath);
      await remove(`named${index}`);
    }
    for (const path of [host, join(host, 'volume'), process.cwd(), '/'])
      assert.ok(!(await readdir(path)).includes('pwned'), path);
  });

  it('CVE-2024-10220, CVE-2025-1767: a gitRepo volume is rejected', async () => {
    const gitRepo = { repository: join(host, 'outside'), directory: '.' };
    const mounts = [{ name: 'git', mountPath: '/git' }];
    await create(podOf('git', { script: 'ls /git', mounts, volumes: [{ name: 'git', gitRepo }] }));
    const why =
      'MountVolume.SetUp failed for volume "git" : git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`';
    await cluster.until('the event', ['get', 'events'], (out) => out.includes(why));
    await remove('git');
  });

  it('no mount and no pod directory is left after all attacks', async () => {
    const { dataDir } = cluster.node;
    await cluster.node.until(
      'all directories to be removed',
      async () => (await readdir(join(dataDir, 'kubelet/pods'))).length === 0,
    );
    assert.ok(!(await readFile('/proc/self/mountinfo', 'utf8')).includes(join(dataDir, 'kubelet/pods')));
  });
});
