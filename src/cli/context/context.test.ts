import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { parse } from 'yaml';
import { realClock, seededRandom } from '../../lib/index.ts';
import { kubeconfigText } from '../../local-api/security/index.ts';
import { runCli } from '../main.ts';

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
  const told: string[] = [];
  const write = (text: string) => void told.push(text);
  const code = await runCli({
    argv: ['context', `--data-dir=${join(directory, 'data')}`, ...argv],
    stdout: { write },
    stderr: { write },
    env: { HOME: join(directory, 'home'), ...env },
    clock: realClock(),
    random: seededRandom(1),
    signal: new AbortController().signal,
  });
  return { code, told: told.join('') };
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

  it('says what to do when kubeling was never up, and rejects a file that is no kubeconfig', async () => {
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
