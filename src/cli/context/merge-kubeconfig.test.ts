import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { mergeKubeconfig, withoutContext } from './merge-kubeconfig.ts';

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

test('keeps the existing content with its comments, and changes nothing the second time', () => {
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

test('rejects a file that is no kubeconfig', () => {
  assert.throws(() => mergeKubeconfig('- a\n', ours, wish), /must be a kubeconfig/);
  assert.throws(() => mergeKubeconfig('clusters: {a: b}\n', ours, wish), /clusters must be a list/);
});

test('removes the entries that were added, and nothing else', () => {
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

test('keeps certificates on one line each', () => {
  const long = JSON.stringify({
    clusters: [{ cluster: { 'certificate-authority-data': 'A'.repeat(2_000) } }],
    users: [{ user: {} }],
  });
  assert.match(mergeKubeconfig('', long, wish), /certificate-authority-data: A{2000}\n/);
});

test('reports what is wrong with a kubeconfig without quoting it', () => {
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
    const said = message(() => withoutContext(theirs, { name: 'kubeling', path: '/home/config' }));
    assert.match(said, /^Cannot change the contexts of \/home\/config/);
    assert.ok(!said.includes('canary'), said);
  }
});
