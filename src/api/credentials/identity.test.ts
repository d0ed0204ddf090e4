import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CertificateFolder } from '../../../test/fakes/certificate-authority.ts';
import { type KubeContext, parseKubeconfig } from '../kubeconfig/kubeconfig.ts';
import { readIdentity } from './identity.ts';

const nothing = { read: () => Promise.reject(new Error('this test must not read a file')) } as never;

function contextOf(): Promise<KubeContext> {
  return parseKubeconfig({
    file: '/etc/k.conf',
    text: `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`,
  });
}

test('reads an embedded certificate and an embedded key separately even if both have the same name', async () => {
  using folder = new CertificateFolder();
  const pair = folder.authority('/CN=someone').issue({ subject: '/O=system:nodes/CN=system:node:n' });
  const context = await contextOf();
  const inline = (pem: string) => ({ kind: 'inline', name: '/pki/current.pem', pem }) as const;
  const certificate = { cert: inline(pair.cert), key: inline(pair.key) };
  const { client } = await readIdentity({ ...context, user: { ...context.user, certificate } }, nothing);
  assert.equal(client?.key, pair.key);
});
