import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubelingError } from '../../lib/index.ts';
import { loadKubeconfig, parseKubeconfig } from './kubeconfig.ts';

const pem = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const pem64 = Buffer.from(pem).toString('base64');

function parse(text: string, context?: string) {
  return parseKubeconfig({ file: '/etc/kubernetes/kubelet.conf', text, context });
}

function kubeconfig(cluster: readonly string[], user: readonly string[]): string {
  return [
    'apiVersion: v1',
    'kind: Config',
    'current-context: here',
    'contexts:',
    '- name: here',
    '  context: {cluster: c, user: u, namespace: kube-system}',
    'clusters:',
    '- name: c',
    '  cluster:',
    ...cluster.map((line) => `    ${line}`),
    'users:',
    '- name: u',
    '  user:',
    ...user.map((line) => `    ${line}`),
  ].join('\n');
}

const plain = ['server: https://10.0.0.1:6443'];

async function problemsOf(text: string): Promise<string[]> {
  const error = await parse(text).then(
    () => assert.fail('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  assert(error instanceof KubelingError);
  assert.equal(error.code, 'KUBECONFIG_INVALID');
  const problems = error.details['problems'] as { line: number; field: string; message: string }[];
  for (const { line } of problems) assert.match(error.message, new RegExp(`kubelet\\.conf:${line}: `));
  return problems.map(({ line, field, message }) => `${line} ${field} ${message}`);
}

test('reads the kubeconfig of a node with paths relative to the file', async () => {
  const text = kubeconfig(
    [
      ...plain,
      'certificate-authority: pki/ca.crt',
      'tls-server-name: api.test',
      'proxy-url: http://proxy.test:3128',
    ],
    [
      'client-certificate: /var/lib/kubelet/pki/current.pem',
      'client-key: ../pki/key.pem',
      'tokenFile: token',
    ],
  );
  const { cluster, user, ...rest } = await parse(text);
  assert.deepEqual(rest, { file: '/etc/kubernetes/kubelet.conf', name: 'here', namespace: 'kube-system' });
  assert.deepEqual(cluster, {
    server: new URL('https://10.0.0.1:6443'),
    ca: { kind: 'file', name: '/etc/kubernetes/pki/ca.crt', path: '/etc/kubernetes/pki/ca.crt' },
    tlsServerName: 'api.test',
    verification: 'full',
    proxyUrl: new URL('http://proxy.test:3128'),
    execConfig: undefined,
  });
  const cert = '/var/lib/kubelet/pki/current.pem';
  assert.deepEqual(user, {
    certificate: {
      cert: { kind: 'file', name: cert, path: cert },
      key: { kind: 'file', name: '/etc/pki/key.pem', path: '/etc/pki/key.pem' },
    },
    token: undefined,
    tokenFile: '/etc/kubernetes/token',
    basic: undefined,
    exec: undefined,
  });
});

test('prefers embedded values over files and accepts JSON', async () => {
  const cluster = { server: 'https://a', 'certificate-authority': 'ca', 'certificate-authority-data': pem64 };
  const text = JSON.stringify({
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'abc' } }],
  });
  const context = await parse(text);
  const name = 'certificate-authority-data of /etc/kubernetes/kubelet.conf';
  assert.deepEqual(context.cluster.ca, { kind: 'inline', name, pem });
  assert.equal(context.user.token, 'abc');
});

test('reads an exec plugin with its environment and its path relative to the file', async () => {
  const cluster = [
    ...plain,
    'extensions:',
    '- name: client.authentication.k8s.io/exec',
    '  extension: {audience: us}',
  ];
  const context = await parse(
    kubeconfig(cluster, [
      'exec:',
      '  apiVersion: client.authentication.k8s.io/v1',
      '  command: ./bin/login',
      '  args: [--for, a]',
      '  env: [{name: A, value: b}]',
      '  interactiveMode: Never',
      '  provideClusterInfo: true',
    ]),
  );
  assert.deepEqual(context.user.exec, {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: '/etc/kubernetes/bin/login',
    args: ['--for', 'a'],
    env: { A: 'b' },
    installHint: undefined,
    clusterInfo: 'provided',
  });
  assert.deepEqual(context.cluster.execConfig, { audience: 'us' });
});

test('selects a context by name, and treats a context without a user as anonymous', async () => {
  const text = `${kubeconfig(plain, ['token: a'])}\n`.replace(
    'contexts:',
    'contexts:\n- name: bare\n  context: {cluster: c}',
  );
  const { name, user } = await parse(text, 'bare');
  assert.equal(name, 'bare');
  assert.equal(user.token, undefined);
});

test('reports every error with line and field', async () => {
  const text = kubeconfig(
    ['server: 10.0.0.1:6443', 'certificate-authority-data: "%%"', 'proxy-url: socks5://a:b@c'],
    ['client-certificate: a.pem', 'username: me', 'token: "a b"', 'auth-provider: {name: gcp}', 'as: you'],
  );
  assert.deepEqual(await problemsOf(text), [
    '19 users[0].user.auth-provider is not supported: use a certificate, a token or an exec plugin',
    '20 users[0].user.as is not supported: use a certificate, a token or an exec plugin',
    '18 users[0].user.token must be printable characters without spaces',
    '16 users[0].user.client-key must be there beside a client certificate',
    '10 clusters[0].cluster.server must be a URL with http:// or https://: current value is "10.0.0.1:6443"',
    '11 clusters[0].cluster.certificate-authority-data must be PEM text encoded as base64',
    '12 clusters[0].cluster.proxy-url must be a URL with http:// or https://: current value is "socks5://***@c"',
  ]);
});

test('rejects contradictory credentials', async () => {
  const cluster = [...plain, 'certificate-authority: ca', 'insecure-skip-tls-verify: true'];
  const user = ['username: me', 'password: "1234"', 'token: abc'];
  assert.deepEqual(await problemsOf(kubeconfig(cluster, user)), [
    '16 users[0].user.username must not be there beside a token',
    '12 clusters[0].cluster.insecure-skip-tls-verify must not be true beside a certificate authority',
  ]);
});

test('requires quotes for values that YAML does not read as text', async () => {
  const text = kubeconfig(plain, ['username: 0123', 'password: yes', 'tokenFile: [a]']);
  assert.deepEqual(
    (await problemsOf(text)).map((problem) => problem.replace(' must be text: put it in quotes', '')),
    ['16 users[0].user.tokenFile', '14 users[0].user.username', '15 users[0].user.password'],
  );
});

test('rejects an exec plugin that requires a terminal or does not set interactiveMode', async () => {
  const exec = (...lines: string[]) => kubeconfig(plain, ['exec:', ...lines.map((line) => `  ${line}`)]);
  const v1 = 'apiVersion: client.authentication.k8s.io/v1';
  const field = 'users[0].user.exec.interactiveMode';
  assert.deepEqual(await problemsOf(exec(v1, 'command: a', 'interactiveMode: Always')), [
    `17 ${field} must not be Always: a node has no terminal`,
  ]);
  assert.deepEqual(await problemsOf(exec(v1, 'command: a')), [
    `15 ${field} must be one of Never, IfAvailable, Always`,
  ]);
  assert.equal((await problemsOf(exec('apiVersion: v1alpha1'))).length, 2);
  assert((await parse(exec(`${v1}beta1`, 'command: a'))).user.exec !== undefined);
});

test('reports references to undefined clusters and users, and lists the defined names', async () => {
  assert.deepEqual(await problemsOf('contexts: []'), ['1 current-context must name a context']);
  assert.deepEqual(await problemsOf('current-context: a\ncontexts:\n- name: b\n  context: {}'), [
    '3 contexts must have one named "a": there are "b"',
  ]);
  const lost = kubeconfig(plain, ['token: a']).replace('cluster: c, user: u', 'cluster: x, user: z');
  assert.deepEqual(await problemsOf(lost), [
    '8 clusters must have one named "x": there are "c"',
    '12 users must have one named "z": there are "u"',
  ]);
});

test('rejects text that is not a kubeconfig', async () => {
  assert.deepEqual(await problemsOf(''), ['1  must not be empty']);
  assert.equal((await problemsOf('{')).length > 0, true);
  assert.deepEqual((await problemsOf('just text'))[0], '1  must be a map of fields');
  const files = { readText: () => Promise.reject(new Error('ENOENT: no such file')) };
  await assert.rejects(
    loadKubeconfig({ path: '/no/where', files }),
    /Cannot read the kubeconfig \/no\/where: ENOENT/,
  );
});
