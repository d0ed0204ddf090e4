import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { ApiCaller } from '../chaos/api-caller.ts';
import { eventually } from '../kubeling-node.ts';
import { LocalCluster } from '../local-api/local-cluster.ts';
import { withoutKubectl } from '../local-api/tour-commands.ts';
import { Registry, registryPassword } from '../registry.ts';
import { Canaries } from './canaries.ts';
import { ProcessWatch } from './process-watch.ts';
import { secretFilesBelow } from './secret-files.ts';
import { failingPods, secretObjects, secretPod, wrongObjects } from './secret-pods.ts';

/**
 * The paths below the data directory where secrets may be stored, each readable by root only; no
 * other path may contain one. Containers read secrets in their own file systems, whose directories
 * are closed to other users as well.
 */
const allowed: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^api\//, 'the objects of the API, its keys and its copies'],
  [/^kubeconfig$/, 'for clients of the API'],
  [/^manifests\//, 'as the user wrote it'],
  [/^kubelet\/last-good-manifests\//, 'previous manifests'],
  [/^kubelet\/pods\/[^/]+\/volumes\/kubernetes\.io~(?:secret|projected)\//, 'volumes, in memory'],
  [/^containerd\//, "containerd's container specs"],
];

/** The tests use the real containerd, a real registry and kubectl. */
describe('secrets on kubeling up', { timeout: 400_000, skip: withoutKubectl() }, () => {
  const canaries = new Canaries();
  let cluster: LocalCluster;
  let registry: Registry;
  let api: ApiCaller;
  let watch: ProcessWatch;
  let folder: string;
  let image: string;
  const responses = new Map<string, string>();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-secrets-'));
    registry = await Registry.open({ directory: folder, access: 'password' });
    image = await registry.push('private:1');
    watch = new ProcessWatch(canaries);
    cluster = await LocalCluster.open();
    api = await ApiCaller.open(cluster.kubeconfig);
    const [{ user }] = parse(await readFile(cluster.kubeconfig, 'utf8')).users;
    canaries.add('key of the kubeconfig', keyLine(Buffer.from(user['client-key-data'], 'base64').toString()));
    await live();
  });

  after(async () => {
    watch?.[Symbol.dispose]();
    api?.[Symbol.dispose]();
    const left = await cluster?.leave();
    await registry?.stop();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  /** Creates pods that use secrets in every way, including failures. */
  async function live(): Promise<void> {
    const { node } = cluster;
    await cluster.apply(...secretObjects(canaries, { host: registry.host, login: registryPassword }));
    await cluster.apply(secretPod(canaries, 'app', image), ...failingPods(canaries, image));
    await cluster.ready('app');
    const token = await cluster.kubectl('exec', 'app', '--', 'cat', '/projected/token');
    canaries.add('service account token', token.trim().split('.').at(-1) ?? '');
    assert.equal(
      await cluster.kubectl('exec', 'app', '--', 'cat', '/secret/file'),
      canaries.of('secret in a volume'),
    );
    await cluster.kubectl('exec', 'app', '--', 'echo', canaries.of('argument of exec'));
    responses.set(
      'exec',
      (await cluster.attempt(['exec', 'app', '--', '/none', canaries.of('failing exec')])).stderr,
    );
    for (const wrong of wrongObjects(canaries)) await refused(wrong);
    await unknownToken();
    await node.put(
      'broken.yaml',
      `apiVersion: v1\nkind: Pod\nspec: {env: "${canaries.of('broken manifest')}\n: [`,
    );
    await node.put('wrong.yaml', wrongManifest());
    await eventually('problems to be reported', async () =>
      /wrong\.yaml/.test(await node.command('explain')) ? true : undefined,
    );
    for (const text of ['FailedPostStartHook', 'Unhealthy', 'no-such-program', 'ErrImagePull'])
      await cluster.event(text, text);
    await cluster.kubectl('delete', 'pod', 'probe', '--grace-period=0', '--force');
  }

  function wrongManifest(): object {
    const env = [{ name: 'A', value: { inner: canaries.of('manifest of a wrong type') } }];
    const containers = [{ name: 'main', image, env: [...env, { value: canaries.of('wrong manifest') }] }];
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'wrong' }, spec: { containers } };
  }

  async function refused(object: object): Promise<void> {
    const { status, body } = await api.call('POST', '/api/v1/namespaces/default/secrets', object);
    assert.ok(status >= 400 && status < 500, JSON.stringify([status, object]));
    responses.set(`refusal of ${JSON.stringify(object).slice(0, 90)}`, JSON.stringify(body));
  }

  async function unknownToken(): Promise<void> {
    const output = await cluster.attempt([
      ...['get', 'pods', `--token=${canaries.of('unknown token')}`, '--kubeconfig=/dev/null'],
      ...[`--server=${await cluster.url()}`, '--insecure-skip-tls-verify'],
    ]);
    responses.set('unknown token', output.stdout + output.stderr);
  }

  const leaks = (pages: ReadonlyMap<string, string>) =>
    [...pages].flatMap(([page, text]) => canaries.in(text).map((name) => `${page} has ${name}`));

  it('secrets are not in the response of a rejected request', () => {
    assert.deepEqual(leaks(responses), [], [...responses].map(String).join('\n'));
  });

  it("secrets are not in events, pod timelines or responses of the node's endpoints", async () => {
    const { node } = cluster;
    const pages = new Map<string, string>([
      ['events', await cluster.kubectl('get', 'events', '-A', '-o', 'json')],
      ['metrics of the API', await cluster.kubectl('get', '--raw', '/metrics')],
      ['statuses', await cluster.kubectl('get', 'pods', '-A', '-o', 'jsonpath={.items[*].status}')],
      ['explain', await node.command('explain')],
      ['status', await node.command('status')],
    ]);
    for (const pod of ['app', 'hook', 'hook-gone', 'probe-gone', 'program', 'variable', 'pull'])
      pages.set(`explain ${pod}`, await node.command('explain', pod));
    for (const path of ['metrics', 'metrics/cadvisor', 'metrics/probes', 'metrics/resource', 'stats/summary'])
      pages.set(path, await node.get(`/${path}`));
    for (const path of ['configz', 'statusz', 'flagz', 'healthz?verbose', 'runningpods/', 'debug/flight'])
      pages.set(path, await node.get(`/${path}`));
    assert.deepEqual(leaks(pages), []);
  });

  it('secrets are not in logs or output of kubeling', async () => {
    const { dataDir, out } = cluster.node;
    const logs = new Map([
      ['output', out],
      ['kubeling.log', await readFile(join(dataDir, 'kubeling.log'), 'utf8')],
    ]);
    assert.ok((logs.get('kubeling.log') ?? '').length > 0);
    assert.deepEqual(leaks(logs), []);
  });

  it('secrets are not in the arguments or environment of host processes', () => {
    assert.ok(watch.samples > 10);
    assert.deepEqual([...watch.found], []);
  });

  it('secrets are on disk only at allowed paths, readable by root only', (t) => {
    const files = secretFilesBelow(cluster.node.dataDir, canaries);
    for (const { path, mode, canaries: found } of files) t.diagnostic(`${mode} ${path}: ${found.join(', ')}`);
    const astray = files.filter(({ path }) => !allowed.some(([pattern]) => pattern.test(path)));
    assert.deepEqual(astray, [], 'where there must be none');
    assert.deepEqual(
      files.filter(({ readableBy }) => readableBy === 'others'),
      [],
      'other users can read it',
    );
    assert.ok(files.some(({ path }) => path.startsWith('api/')));
    assert.ok(files.some(({ path }) => path.includes('kubernetes.io~secret')));
  });
});

/** A line of a PEM key that no other key contains. */
function keyLine(pem: string): string {
  return pem.split('\n').at(2) ?? pem;
}
