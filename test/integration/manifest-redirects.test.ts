import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { httpGet } from '../../src/sources/index.ts';
import { CertificateFolder, type KeyPair } from '../fakes/certificate-authority.ts';

/** A loopback address only for this test, so that ports 80 and 443 are free. */
const address = '127.83.67.17';
const secret = { Authorization: ['Bearer s3cr3t'] };
const signal = AbortSignal.timeout(60_000);

async function serve(response: RequestListener, port = 0, tls?: KeyPair) {
  const server = tls === undefined ? createServer(response) : createTlsServer(tls, response);
  server.listen(port, address);
  await once(server, 'listening');
  return {
    origin: `http://${address}:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * CVE-2022-27774, CVE-2024-45336: configured request headers must be sent only to the configured
 * server.
 */
describe('request headers configured for a manifest URL', () => {
  const observed: string[] = [];
  const serverFor =
    (name: string): RequestListener =>
    (request, response) => {
      observed.push(`${name} ${request.headers.authorization ?? 'nothing'}`);
      const location = new URL(request.url ?? '', 'http://x').searchParams.get('to');
      if (location === null) response.end('done');
      else response.writeHead(302, { location }).end();
    };

  it('the headers are not sent to another server on a redirect, or after a redirect back', async () => {
    await using first = await serve(serverFor('first'));
    await using other = await serve(serverFor('other'));
    const back = `${other.origin}/?to=${encodeURIComponent(`${first.origin}/page`)}`;
    await httpGet(`${first.origin}/?to=${encodeURIComponent(back)}`, secret, signal);
    assert.deepEqual(observed.splice(0), ['first Bearer s3cr3t', 'other nothing', 'first nothing']);
  });

  it('headers configured for an https URL are not sent to a server without TLS', async (t) => {
    if (process.getuid?.() !== 0) return t.skip('needs root for the ports');
    using folder = new CertificateFolder();
    const authority = folder.authority('/CN=manifests');
    const wish = { subject: '/CN=manifests', use: 'serverAuth', san: `IP:${address}` } as const;
    const trusted = getCACertificates('default');
    setDefaultCACertificates([authority.pem]);
    try {
      await using _open = await serve(serverFor('open'), 80);
      await using _sealed = await serve(serverFor('sealed'), 443, authority.issue(wish));
      await httpGet(`https://${address}/?to=${encodeURIComponent(`http://${address}/`)}`, secret, signal);
    } finally {
      setDefaultCACertificates(trusted);
    }
    assert.deepEqual(observed.splice(0), ['sealed Bearer s3cr3t', 'open nothing']);
  });
});
