import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { SmallCluster } from '../cluster/small-cluster.ts';
import { eventually } from '../kubeling-node.ts';
import { withoutKubectl } from '../local-api/tour-commands.ts';
import { Canaries } from './canaries.ts';
import { ProcessWatch } from './process-watch.ts';
import { type SecretFile, secretFilesBelow } from './secret-files.ts';
import { failingPods, secretObjects, secretPod } from './secret-pods.ts';

interface User {
  readonly user: Readonly<Record<string, string>>;
}

/** The paths below the node's directory where secrets may be stored, each readable by root only. */
const allowed: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^kubelet\.conf$/, 'how the API is reached'],
  [/^kubelet\/(?:pods|pki)\//, 'volumes in memory, and certificates'],
];

/** A cluster node that logs at the most detailed level. */
describe('secrets on a cluster node with full logging', {
  timeout: 400_000,
  skip: withoutKubectl(),
}, () => {
  const canaries = new Canaries();
  const registry = '127.0.0.1:9';
  let folder: string;
  let cluster: SmallCluster;
  let watch: ProcessWatch;
  let files: readonly SecretFile[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-secrets-'));
    watch = new ProcessWatch(canaries);
    cluster = await SmallCluster.openEmbedded({}, { flags: ['--v=10', ...(await credentialProvider())] });
    await useCredentialPlugin();
    await cluster.node.reachable();
    await live();
  });

  after(async () => {
    watch?.[Symbol.dispose]();
    await cluster?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function program(name: string, response: object): Promise<string> {
    const path = join(folder, name);
    await writeFile(`${path}.json`, JSON.stringify(response), { mode: 0o600 });
    await writeFile(path, `#!/bin/sh\nexec cat ${path}.json\n`, { mode: 0o755 });
    return path;
  }

  /**
   * Creates a credential provider plugin and returns the kubelet flags for it; no server listens at
   * the image's registry.
   */
  async function credentialProvider(): Promise<readonly string[]> {
    const apiVersion = 'credentialprovider.kubelet.k8s.io/v1';
    const auth = {
      [registry]: { username: 'alice', password: canaries.of('answer of a credential provider') },
    };
    await program('helper', {
      kind: 'CredentialProviderResponse',
      apiVersion,
      cacheKeyType: 'Registry',
      auth,
    });
    const known = { name: 'helper', matchImages: [registry], defaultCacheDuration: '10m', apiVersion };
    const kind = 'CredentialProviderConfig';
    const config = { apiVersion: 'kubelet.config.k8s.io/v1', kind, providers: [known] };
    await writeFile(join(folder, 'providers.json'), JSON.stringify(config));
    return [
      `--image-credential-provider-config=${join(folder, 'providers.json')}`,
      `--image-credential-provider-bin-dir=${folder}`,
    ];
  }

  /** Restarts the node with a kubeconfig that gets the client certificate from an exec plugin. */
  async function useCredentialPlugin(): Promise<void> {
    const { node } = cluster;
    await node.stop();
    const config = parse(await readFile(node.kubeconfig, 'utf8'));
    const [{ user }] = config.users as readonly [User];
    const pem = async (name: string) =>
      user[name] === undefined
        ? Buffer.from(user[`${name}-data`] ?? '', 'base64').toString()
        : await readFile(user[name], 'utf8');
    const apiVersion = 'client.authentication.k8s.io/v1';
    const key = await pem('client-key');
    canaries.add('key of the node', key.split('\n').at(2) ?? '');
    const command = await program('login', {
      apiVersion,
      kind: 'ExecCredential',
      status: {
        clientCertificateData: await pem('client-certificate'),
        clientKeyData: key,
        token: canaries.of('token of a credential plugin'),
      },
    });
    config.users[0].user = { exec: { apiVersion, command, interactiveMode: 'Never' } };
    await writeFile(node.kubeconfig, stringify(config));
    await node.start();
    await cluster.node.ready();
  }

  async function live(): Promise<void> {
    const { plane, node } = cluster;
    const image = `${registry}/private:1`;
    await plane.apply(...secretObjects(canaries, { host: registry, login: canaries.of('registry login') }));
    const ours = JSON.stringify([secretPod(canaries, 'app', node.image), ...failingPods(canaries, image)]);
    const pods = JSON.parse(ours.replaceAll('localhost/kubeling/busybox:1', node.image));
    await plane.apply(...pods);
    await plane.kubectl('wait', '--for=condition=Ready', 'pod/app', '--timeout=90s');
    await plane.kubectl('exec', 'app', '--', 'echo', canaries.of('argument of exec'));
    const events = () => plane.kubectl('get', 'events');
    for (const text of ['FailedPostStartHook', 'Unhealthy', 'ErrImagePull'])
      await eventually(
        text,
        async () => ((await events()).includes(text) ? true : undefined),
        60_000,
        cluster.told,
      );
    files = secretFilesBelow(dirname(node.rootDir), canaries);
    await plane.kubectl('delete', 'pod', 'app', 'probe');
  }

  it('secrets are not in the output of kubeling', () => {
    const { out } = cluster.node;
    assert.ok(out.length > 10_000);
    const lines = out.split('\n').flatMap((line) => {
      const found = canaries.in(line);
      return found.length === 0 ? [] : [`${found.join(', ')}: ${line.slice(0, 300)}`];
    });
    assert.deepEqual(lines, []);
  });

  it("secrets are not in responses of the node's endpoints or in events", async () => {
    const { plane } = cluster;
    const proxy = `/api/v1/nodes/${cluster.node.name}/proxy`;
    const pages = [
      'metrics',
      'metrics/cadvisor',
      'metrics/probes',
      'configz',
      'statusz',
      'flagz',
      'stats/summary',
    ];
    const texts = new Map([['events', await plane.kubectl('get', 'events', '-o', 'json')]]);
    for (const page of pages) {
      const { status, body } = await plane.ask(`${proxy}/${page}`);
      assert.equal(status, 200, page);
      texts.set(page, body);
    }
    const leaks = [...texts].flatMap(([page, text]) =>
      canaries.in(text).map((name) => `${page} has ${name}`),
    );
    assert.deepEqual(leaks, []);
  });

  it('secrets are not in the arguments or environment of host processes', () => {
    assert.deepEqual([...watch.found], []);
  });

  it('secrets are on disk only at allowed paths, readable by root only', (t) => {
    assert.ok(files.some(({ path }) => path.includes('kubernetes.io~secret')));
    for (const { path, mode, canaries: found } of files) t.diagnostic(`${mode} ${path}: ${found.join(', ')}`);
    const isAllowed = (path: string) => allowed.some(([pattern]) => pattern.test(path));
    assert.deepEqual(
      files.filter(({ path, readableBy }) => readableBy === 'others' || !isAllowed(path)),
      [],
    );
  });
});
