import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it, test } from 'node:test';
import { parse } from 'yaml';
import { realClock, seededRandom } from '../../lib/index.ts';
import { kubeconfigText } from '../../local-api/security/index.ts';
import { runCli } from '../main.ts';
import { mergeKubeconfig, withoutContext } from './context.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubeling-context-'));
  const user = { kind: 'inline', certificatePem: 'certificate', keyPem: 'key' } as const;
  const server = 'https://127.0.0.1:7443';
  const own = kubeconfigText({ server, authorityPem: 'ca', user, userName: 'kubeling-admin' });
  await mkdir(join(directory, 'data'));
  await writeFile(join(directory, 'data', 'kubeconfig'), own);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function context(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const reported: string[] = [];
  const write = (text: string) => void reported.push(text);
  const code = await runCli({
    argv: ['context', `--data-dir=${join(directory, 'data')}`, ...argv],
    stdout: { write },
    stderr: { write },
    env: { HOME: join(directory, 'home'), ...env },
    clock: realClock(),
    random: seededRandom(1),
    signal: new AbortController().signal,
  });
  return { code, told: reported.join('') };
}

const read = async (...at: readonly string[]) => parse(await readFile(join(directory, ...at), 'utf8'));

describe('kubeling context', () => {
  it('creates a kubeconfig at the default path when there is none', async () => {
    const { code, told } = await context([]);
    assert.equal(code, 0);
    assert.match(told, /The context kubeling is in .*home\/.kube\/config, and it is the current context\.\n/);
    const { clusters, users, ...rest } = await read('home', '.kube', 'config');
    assert.equal(clusters[0].cluster.server, 'https://127.0.0.1:7443');
    assert.equal(Buffer.from(users[0].user['client-key-data'], 'base64').toString(), 'key');
    assert.equal(rest['current-context'], 'kubeling');
  });

  it('adds the context to the first file of $KUBECONFIG, and removes it again', async () => {
    const path = join(directory, 'mine');
    const before = 'clusters:\n  - name: work\n    cluster: {}\ncurrent-context: work\n';
    await writeFile(path, before);
    const env = { KUBECONFIG: `:${path}:${join(directory, 'other')}` };
    assert.equal((await context(['--name=box', '--use=false'], env)).code, 0);
    const merged = await read('mine');
    assert.deepEqual(
      merged.clusters.map(({ name }: { readonly name: string }) => name),
      ['work', 'box'],
    );
    assert.equal(merged['current-context'], 'work');
    assert.equal(await readFile(`${path}.kubeling-backup`, 'utf8'), before);
    assert.match((await context(['--name=box', '--use=false'], env)).told, /already/);
    assert.match((await context(['--name=box', '--remove'], env)).told, /no longer in/);
    assert.deepEqual((await read('mine')).clusters, [{ name: 'work', cluster: {} }]);
    assert.match((await context(['--name=box', '--remove'], env)).told, /There is no context box/);
  });

  it('reports what to do when kubeling was never started, and rejects a file that is not a kubeconfig', async () => {
    const path = join(directory, 'mine');
    await writeFile(path, '- a\n');
    const refused = await context([`--kubeconfig=${path}`]);
    assert.equal(refused.code, 1);
    assert.match(refused.told, /must be a kubeconfig/);
    assert.equal(await readFile(path, 'utf8'), '- a\n');
    await rm(join(directory, 'data'), { recursive: true });
    const nothing = await context([]);
    assert.equal(nothing.code, 1);
    assert.match(nothing.told, /start kubeling there with "kubeling up"/);
  });
});

const ours = JSON.stringify({
  clusters: [{ name: 'kubeling', cluster: { server: 'https://127.0.0.1:7443' } }],
  users: [{ name: 'kubeling-admin', user: { 'client-key-data': 'a2V5' } }],
});
const wish = { name: 'kubeling', choose: 'use', path: 'config' } as const;

test('turns an empty file into a kubeconfig', () => {
  assert.deepEqual(parse(mergeKubeconfig('', ours, wish)), {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'kubeling', cluster: { server: 'https://127.0.0.1:7443' } }],
    users: [{ name: 'kubeling', user: { 'client-key-data': 'a2V5' } }],
    contexts: [{ name: 'kubeling', context: { cluster: 'kubeling', user: 'kubeling' } }],
    'current-context': 'kubeling',
  });
});

test('keeps the existing content of the kubeconfig with its comments, and does not change the file when the context is added again', () => {
  const theirs =
    'apiVersion: v1\nkind: Config\n# of my company\nclusters:\n  - name: work\n    cluster: {server: "https://work"}\nusers: []\ncontexts:\n  - name: work\n    context: {cluster: work, user: me}\ncurrent-context: work\n';
  const once = mergeKubeconfig(theirs, ours, { ...wish, choose: 'keep' });
  assert.match(once, /# of my company/);
  assert.deepEqual(
    parse(once).contexts.map(({ name }: { readonly name: string }) => name),
    ['work', 'kubeling'],
  );
  assert.equal(parse(once)['current-context'], 'work');
  assert.equal(mergeKubeconfig(once, ours, { ...wish, choose: 'keep' }), once);
});

test('rejects a file that is not a kubeconfig', () => {
  assert.throws(() => mergeKubeconfig('- a\n', ours, wish), /must be a kubeconfig/);
  assert.throws(() => mergeKubeconfig('clusters: {a: b}\n', ours, wish), /clusters must be a list/);
});

test('removes only the entries that kubeling added to the kubeconfig', () => {
  const theirs =
    'apiVersion: v1\nkind: Config\n# of my company\nclusters:\n  - name: work\n    cluster: {server: "https://work"}\nusers: []\ncontexts: []\ncurrent-context: work\n';
  const merged = mergeKubeconfig(theirs, ours, wish);
  assert.equal(parse(merged)['current-context'], 'kubeling');
  const without = withoutContext(merged, wish);
  assert.match(without, /# of my company/);
  assert.deepEqual(parse(without), { ...parse(theirs), 'current-context': '' });
  assert.equal(withoutContext(without, wish), without, 'a second time changes nothing');
  assert.equal(withoutContext('', wish), '');
  assert.throws(() => withoutContext('- a\n', wish), /must be a kubeconfig/);
});

test('does not fold long lines of the kubeconfig, such as certificates', () => {
  const long = JSON.stringify({
    clusters: [{ cluster: { 'certificate-authority-data': 'A'.repeat(2_000) } }],
    users: [{ user: {} }],
  });
  assert.match(mergeKubeconfig('', long, wish), /certificate-authority-data: A{2000}\n/);
});

test('reports errors in a kubeconfig without quoting its content', () => {
  for (const theirs of [
    'users:\n- user: {token: canary-token\nclusters: [',
    'users:\n- user:\n    token: "canary-token\n',
    'canary-token',
    'token: canary-token\n\ttoken: *canary-token\n',
  ]) {
    const message = (act: () => unknown) => {
      try {
        act();
      } catch (error) {
        return error instanceof Error ? error.message : '';
      }
      return '';
    };
    const output = message(() => withoutContext(theirs, { name: 'kubeling', path: '/home/config' }));
    assert.match(output, /^Cannot change the contexts of \/home\/config/);
    assert.ok(!output.includes('canary'), output);
  }
});
