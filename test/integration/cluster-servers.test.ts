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

describe('the servers of a node of a cluster', () => {
  let node: ClusterNode;
  let readOnlyPort: number;

  before(async () => {
    [readOnlyPort = 0] = await freePorts(1);
    node = await ClusterNode.open({ flags: [clientCa, ...pair], readOnlyPort });
  });
  after(() => node?.[Symbol.asyncDispose]());

  test('who shows nothing, a wrong token or a certificate of others is refused on every way in', async () => {
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

  test('a known token passes where the API server allows it, and nowhere else', async () => {
    assert.equal((await call(node, '/pods', alice)).status, 200);
    const denied = await call(node, '/pods', bearer('token-of-bob'));
    assert.equal(denied.status, 403);
    assert.match(denied.body, /user=bob, verb=get, resource=nodes, subresource\(s\)=\[pods proxy\]/);
  });

  test('a certificate of the client authority passes by its name and groups', async () => {
    const certificate = node.authority.issue({ subject: '/O=team/CN=alice' });
    assert.equal((await call(node, '/runningpods/', certificate)).status, 200);
    const asked = node.asked.at(-1) as unknown as { spec: Record<string, unknown> };
    assert.equal(asked.spec['user'], 'alice');
    assert.deepEqual(asked.spec['groups'], ['team', 'system:authenticated']);
    assert.deepEqual(asked.spec['resourceAttributes'], {
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

  test('every endpoint of the node is there for who may ask', async () => {
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
      const answer = await call(node, path, { ...alice, method });
      assert.equal(answer.status, status, `${method} ${path}: ${answer.body}`);
      assert.match(answer.body, body, `${method} ${path}`);
    }
    assert.deepEqual(node.frozen, ['c1']);
    assert.equal(statSync(node.at('root/checkpoints')).mode & 0o777, 0o700);
  });

  test('the configuration shown is the one in effect, with all defaults', async () => {
    const { kubeletconfig } = JSON.parse((await call(node, '/configz', alice)).body);
    assert.equal(kubeletconfig.authentication.x509.clientCAFile, node.at('client-ca.pem'));
    assert.equal(kubeletconfig.nodeStatusReportFrequency, '5m0s');
    assert.equal(kubeletconfig.maxPods, 110);
  });

  test('a stream is let through to the runtime only behind the gate', async () => {
    const upgrade = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1' };
    const path = '/exec/default/web/main?output=1&command=id';
    const allowed = await call(node, path, { method: 'POST', headers: { ...upgrade, ...alice.headers } });
    assert.equal(allowed.status, 500);
    const bob = bearer('token-of-bob').headers;
    assert.equal((await call(node, path, { method: 'POST', headers: { ...upgrade, ...bob } })).status, 403);
  });

  test('the log is told more or less by who may', async () => {
    assert.equal((await call(node, '/debug/flags/v', { ...alice, method: 'PUT', body: '5' })).status, 200);
    assert.equal(node.verbosity.level, 5);
  });

  test('the port for reading asks nobody, and neither enters pods nor changes anything', async () => {
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

  test('new files for the certificate are served with, and broken ones leave the last good one', async () => {
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
    await until('the broken file was seen', () =>
      [...node.logs.records].some(({ message }) => message === 'Failed to read serving certificate again'),
    );
    assert.equal(await servedBy(node), served);
  });
});

test('without files or a signer the certificate is our own, names the node, and is kept', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa] });
  const certificate = new X509Certificate(readFileSync(node.at('pki/kubelet.crt')));
  assert.equal(certificate.subjectAltName, 'DNS:n1, IP Address:127.0.0.1');
  assert.equal(statSync(node.at('pki/kubelet.key')).mode & 0o777, 0o600);
  assert.equal(await servedBy(node), certificate.serialNumber);
});

test('the cluster signs the certificate where it is to, and nobody gets in before', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa, '--rotate-server-certificates'], times: 50 });
  await until('the cluster was asked', () => node.signer.created.length > 0);
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

test('as long as nobody signs its certificate the node says what it waits for', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa, '--rotate-server-certificates'], times: 50 });
  node.signer.policy = 'leave';
  await until('it tells', () => /kubectl certificate approve/.test(node.servers.problem() ?? ''));
  for (const { metadata } of node.signer.created) node.signer.approve(metadata.name);
  await until('nothing is wrong any more', () => node.servers.problem() === undefined);
});

test('the right it takes to enter pods follows the method where that is wanted', async () => {
  const verbOf = async (...flags: readonly string[]) => {
    await using node = await ClusterNode.open({ flags: [clientCa, ...pair, ...flags] });
    const mallory = node.authority.issue({ subject: '/CN=mallory' });
    return (await call(node, '/exec/default/web/main?output=1', mallory)).body;
  };
  assert.match(await verbOf(), /verb=create/);
  assert.match(await verbOf('--stream-authorization=by-method'), /verb=get/);
});

test('who shows nothing is anonymous where that is allowed, and asked for like anybody', async () => {
  await using node = await ClusterNode.open({ flags: ['--anonymous-auth', ...pair] });
  assert.match((await call(node, '/pods')).body, /user=system:anonymous/);
  assert.equal((await call(node, '/pods', bearer('guess'))).status, 401);
});

test('while the API server refuses to say, nobody is let in', async () => {
  await using node = await ClusterNode.open({ flags: [clientCa, ...pair], api: 'away' });
  const certificate = node.authority.issue({ subject: '/CN=alice' });
  const answer = await call(node, '/pods', certificate);
  assert.equal(answer.status, 500);
  assert.match(answer.body, /^Authorization error/);
  assert.equal((await call(node, '/pods', alice)).status, 401);
});

test('what is switched off is not there', async () => {
  const flags = [clientCa, '--enable-debugging-handlers=false', ...pair];
  await using node = await ClusterNode.open({ flags });
  assert.equal((await call(node, '/pods', alice)).status, 200);
  assert.equal((await call(node, '/exec/default/web/main?output=1', alice)).status, 405);
  assert.equal((await call(node, '/configz', alice)).status, 404);
});

test('with no server wanted only the port for reading is there', async () => {
  const [readOnlyPort = 0] = await freePorts(1);
  await using node = await ClusterNode.open({ flags: ['--enable-server=false'], readOnlyPort });
  assert.equal(node.port, undefined);
  assert.equal((await plain(readOnlyPort, '/healthz')).status, 200);
});

test('a configuration under which nobody could be known or judged does not start', async () => {
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
      if (certificate === undefined) reject(new Error('no certificate was shown'));
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
