import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';
import type { KubelingError } from '../../src/lib/index.ts';
import { CertificateFolder } from '../fakes/certificate-authority.ts';
import { ClusterNode } from '../fakes/cluster-node.ts';
import { call } from '../fakes/tls-node.ts';
import { until } from '../fakes/until.ts';
import { freePorts } from '../free-ports.ts';

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const alice = bearer('token-of-alice');
const clientCa = '--client-ca-file={dir}/client-ca.pem';
const pair = ['--tls-cert-file={dir}/serving.pem', '--tls-private-key-file={dir}/serving.key'];

describe('the servers of a cluster node', () => {
  let node: ClusterNode;
  let readOnlyPort: number;

  before(async () => {
    [readOnlyPort = 0] = await freePorts(1);
    node = await ClusterNode.open({ flags: [clientCa, ...pair], readOnlyPort });
  });
  after(() => node?.[Symbol.asyncDispose]());

  test('the servers reject missing credentials, wrong tokens and foreign certificates on every path', async () => {
    using strangers = new CertificateFolder();
    const foreign = strangers.authority('/CN=ca').issue({ subject: '/O=system:masters/CN=alice' });
    const upgrade = { headers: { Connection: 'Upgrade', Upgrade: 'SPDY/3.1' }, method: 'POST' };
    for (const credential of [{}, bearer('guess'), foreign, upgrade]) {
      for (const path of ['/pods', '/healthz', '/configz', '/exec/default/web/main?output=1', '/nothing']) {
        assert.equal(
          (await call(node, path, credential)).status,
          401,
          `${path} ${JSON.stringify(credential)}`,
        );
      }
    }
  });

  test('the servers accept a valid token only where the API server authorizes it', async () => {
    assert.equal((await call(node, '/pods', alice)).status, 200);
    const denied = await call(node, '/pods', bearer('token-of-bob'));
    assert.equal(denied.status, 403);
    assert.match(denied.body, /user=bob, verb=get, resource=nodes, subresource\(s\)=\[pods proxy\]/);
  });

  test('the servers authenticate a client by the name and groups in its certificate of the client CA', async () => {
    const certificate = node.authority.issue({ subject: '/O=team/CN=alice' });
    assert.equal((await call(node, '/runningpods/', certificate)).status, 200);
    const requested = node.asked.at(-1) as unknown as { spec: Record<string, unknown> };
    assert.equal(requested.spec['user'], 'alice');
    assert.deepEqual(requested.spec['groups'], ['team', 'system:authenticated']);
    assert.deepEqual(requested.spec['resourceAttributes'], {
      group: '',
      version: 'v1',
      resource: 'nodes',
      verb: 'get',
      subresource: 'pods',
      name: 'n1',
    });
    const other = node.authority.issue({ subject: '/CN=mallory' });
    assert.equal((await call(node, '/runningpods/', other)).status, 403);
  });

  test('the servers serve every endpoint of the node to an authorized client', async () => {
    const found = [
      ['GET', '/healthz', 200, /^ok$/],
      ['GET', '/healthz/ping', 200, /^ok$/],
      ['GET', '/readyz', 500, /runtime failed: it is away/],
      ['GET', '/pods', 200, /"name":"web"/],
      ['GET', '/runningpods/', 200, /"name":"main"/],
      ['GET', '/metrics', 200, /kubelet_http_requests_total\{/],
      ['GET', '/metrics', 200, /kubelet_certificate_manager_server_ttl_seconds 1\d{5}/],
      ['GET', '/metrics/probes', 200, /^/],
      ['GET', '/metrics/slis', 200, /kubernetes_healthcheck\{name="ping",type="healthz"\} 1/],
      ['GET', '/configz', 200, /"kubeletconfig":\{"apiVersion":"kubelet.config.k8s.io\/v1beta1"/],
      ['GET', '/logs/sys.log', 200, /hello/],
      ['PUT', '/debug/flags/v', 400, /whole number/],
      ['GET', '/debug/flight', 200, /"problems":\[\]/],
      ['GET', '/containerLogs/default/web/other', 404, /container "other" not found/],
      ['GET', '/containerLogs/default/web/main?tailLines=-1', 422, /Invalid request/],
      ['POST', '/run/default/web/main?cmd=id', 200, /^ran$/],
      ['POST', '/exec/default/web/main?output=1', 500, /Upgrade request required/],
      ['GET', '/attach/default/web/main', 400, /at least 1 of stdin/],
      ['POST', '/portForward/default/gone', 404, /pod does not exist/],
      ['POST', '/checkpoint/default/web/main', 200, /checkpoint-web_default-main-.*\.tar"\]/],
    ] as const;
    for (const [method, path, status, body] of found) {
      const response = await call(node, path, { ...alice, method });
      assert.equal(response.status, status, `${method} ${path}: ${response.body}`);
      assert.match(response.body, body, `${method} ${path}`);
    }
    assert.deepEqual(node.frozen, ['c1']);
    assert.equal(statSync(node.at('root/checkpoints')).mode & 0o777, 0o700);
  });

  test('the configuration endpoint returns the effective configuration with all defaults', async () => {
    const { kubeletconfig } = JSON.parse((await call(node, '/configz', alice)).body);
    assert.equal(kubeletconfig.authentication.x509.clientCAFile, node.at('client-ca.pem'));
    assert.equal(kubeletconfig.nodeStatusReportFrequency, '5m0s');
    assert.equal(kubeletconfig.maxPods, 110);
  });

  test('the servers forward a stream to the runtime only after authorization', async () => {
    const upgrade = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1' };
    const path = '/exec/default/web/main?output=1&command=id';
    const allowed = await call(node, path, { method: 'POST', headers: { ...upgrade, ...alice.headers } });
    assert.equal(allowed.status, 500);
    const bob = bearer('token-of-bob').headers;
    assert.equal((await call(node, path, { method: 'POST', headers: { ...upgrade, ...bob } })).status, 403);
  });

  test('the servers change the log level for an authorized client', async () => {
    assert.equal((await call(node, '/debug/flags/v', { ...alice, method: 'PUT', body: '5' })).status, 200);
    assert.equal(node.verbosity.level, 5);
  });

  test('the read-only port requires no authentication and supports neither exec nor changes', async () => {
    assert.equal(node.servers.readOnlyPort, readOnlyPort);
    assert.equal((await plain(readOnlyPort, '/healthz')).status, 200);
    assert.match((await plain(readOnlyPort, '/pods')).body, /"name":"web"/);
    for (const path of ['/exec/default/web/main', '/containerLogs/default/web/main', '/logs/sys.log']) {
      assert.deepEqual(await plain(readOnlyPort, path), {
        status: 405,
        body: 'Debug endpoints are disabled.\n',
      });
    }
    for (const path of [
      '/configz',
      '/checkpoint/default/web/main',
      '/debug/flags/v',
      '/debug/flight',
      '/readyz',
    ]) {
      assert.equal((await plain(readOnlyPort, path)).status, 404, path);
    }
  });

  test('the servers use replaced certificate files, and keep the last valid ones when the files are broken', async () => {
    const before = await servedBy(node);
    node.writeServingPair();
    let served = before;
    await until('another certificate is served', () => {
      void servedBy(node).then((serial) => {
        served = serial;
      });
      return served !== before;
    });
    writeFileSync(node.at('serving.pem'), 'broken');
    await until('the broken file was detected', () =>
      [...node.logs.records].some(({ message }) => message === 'Failed to read serving certificate again'),
    );
    assert.equal(await servedBy(node), served);
  });
});

test("the servers create and store a self-signed certificate with the node's name when neither certificate files nor a signer are configured", async () => {
  await using node = await ClusterNode.open({ flags: [clientCa] });
  const certificate = new X509Certificate(readFileSync(node.at('pki/kubelet.crt')));
  assert.equal(certificate.subjectAltName, 'DNS:n1, IP Address:127.0.0.1');
  assert.equal(statSync(node.at('pki/kubelet.key')).mode & 0o777, 0o600);
  assert.equal(await servedBy(node), certificate.serialNumber);
});

test('the servers use a certificate signed by the cluster, and reject clients before it is issued', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa, '--rotate-server-certificates'], times: 50 });
  await until('the cluster received the request', () => node.signer.created.length > 0);
  let subject = '';
  await until('its certificate is served', () => {
    void peerOf(node).then(
      (certificate) => {
        subject = certificate.subject;
      },
      () => {},
    );
    return subject !== '';
  });
  assert.match(subject, /CN=system:node:n1/);
});

test('the servers report as a problem that the node waits for its certificate', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa, '--rotate-server-certificates'], times: 50 });
  node.signer.policy = 'leave';
  await until('it tells', () => /kubectl certificate approve/.test(node.servers.problem() ?? ''));
  for (const { metadata } of node.signer.created) node.signer.approve(metadata.name);
  await until('no problem is reported any more', () => node.servers.problem() === undefined);
});

test('the servers require the verb create for exec, or the verb of the HTTP method with --stream-authorization=by-method', async () => {
  const verbOf = async (...flags: readonly string[]) => {
    await using node = await ClusterNode.open({ flags: [clientCa, ...pair, ...flags] });
    const mallory = node.authority.issue({ subject: '/CN=mallory' });
    return (await call(node, '/exec/default/web/main?output=1', mallory)).body;
  };
  assert.match(await verbOf(), /verb=create/);
  assert.match(await verbOf('--stream-authorization=by-method'), /verb=get/);
});

test('the servers treat requests without credentials as the user system:anonymous with --anonymous-auth, and still reject wrong tokens', async () => {
  await using node = await ClusterNode.open({ flags: ['--anonymous-auth', ...pair] });
  assert.match((await call(node, '/pods')).body, /user=system:anonymous/);
  assert.equal((await call(node, '/pods', bearer('guess'))).status, 401);
});

test('the servers reject every client while the API server does not respond to authorization reviews', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa, ...pair], api: 'away' });
  const certificate = node.authority.issue({ subject: '/CN=alice' });
  const response = await call(node, '/pods', certificate);
  assert.equal(response.status, 500);
  assert.match(response.body, /^Authorization error/);
  assert.equal((await call(node, '/pods', alice)).status, 401);
});

test('the servers do not serve disabled endpoints', async () => {
  const flags = [clientCa, '--enable-debugging-handlers=false', ...pair];
  await using node = await ClusterNode.open({ flags });
  assert.equal((await call(node, '/pods', alice)).status, 200);
  assert.equal((await call(node, '/exec/default/web/main?output=1', alice)).status, 405);
  assert.equal((await call(node, '/configz', alice)).status, 404);
});

test('with --enable-server=false only the read-only port is served', async () => {
  const [readOnlyPort = 0] = await freePorts(1);
  await using node = await ClusterNode.open({ flags: ['--enable-server=false'], readOnlyPort });
  assert.equal(node.port, undefined);
  assert.equal((await plain(readOnlyPort, '/healthz')).status, 200);
});

test('the servers do not start with a configuration by which no client can be authenticated or authorized', async () => {
  const codeOf = async (...[wish]: Parameters<typeof ClusterNode.open>) =>
    await ClusterNode.open(wish).then(
      async (node) => {
        await node[Symbol.asyncDispose]();
        return 'opened';
      },
      (error: KubelingError) => error.code,
    );
  assert.equal(await codeOf({ flags: ['--authentication-token-webhook=false', ...pair] }), 'AUTH_CONFIG');
  assert.equal(await codeOf({ flags: [clientCa, ...pair], api: 'none' }), 'AUTH_CONFIG');
  assert.equal(await codeOf({ flags: ['--client-ca-file={dir}/gone.pem', ...pair] }), 'CLIENT_CA');
});

function peerOf({ port = 0 }: ClusterNode): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error('no certificate was presented'));
      else resolve(certificate);
    });
    socket.on('error', reject);
  });
}

async function servedBy(node: ClusterNode): Promise<string> {
  return (await peerOf(node)).serialNumber;
}

function plain(port: number, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}
