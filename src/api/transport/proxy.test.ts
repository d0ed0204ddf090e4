import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isExempt, proxyFor } from './proxy.ts';

test('parses NO_PROXY as Go programs do', () => {
  const exempt = (host: string, list: string) => isExempt(new URL(`https://${host}`), list);
  assert(exempt('api.test', 'api.test'));
  assert(exempt('a.api.test', 'api.test'));
  assert(!exempt('myapi.test', 'api.test'));
  assert(!exempt('api.test', '.api.test'));
  assert(exempt('a.api.test', '*.api.test'));
  assert(exempt('API.test', ' other , api.TEST'));
  assert(exempt('10.1.2.3:6443', '10.0.0.0/8'));
  assert(!exempt('11.1.2.3', '10.0.0.0/8'));
  assert(!exempt('10.1.2.3', 'fd00::/8'));
  assert(exempt('[fd00::1]:6443', 'fd00::/8'));
  assert(exempt('[fd00::1]:6443', 'fd00::1'));
  assert(exempt('[fd00::1]:6443', '[fd00::1]:6443'));
  assert(exempt('10.1.2.3:6443', '10.1.2.3:6443'));
  assert(!exempt('10.1.2.3:6443', '10.1.2.3:443'));
  assert(exempt('api.test', 'api.test:443'));
  assert(exempt('anything', '*'));
  assert(exempt('localhost:6443', ''));
  assert(exempt('127.0.0.1', ''));
  assert(exempt('[::1]', ''));
  assert(!exempt('api.test', ''));
  assert(!exempt('10.1.2.3', '10.0.0.0/99'));
});

test('prefers the proxy of the kubeconfig over the one of the environment', () => {
  const at = (server: string, proxyUrl?: string) => ({
    cluster: {
      server: new URL(server),
      proxyUrl: proxyUrl === undefined ? undefined : new URL(proxyUrl),
      ca: undefined,
      tlsServerName: undefined,
      verification: 'full' as const,
      execConfig: undefined,
    },
  });
  const env = { https_proxy: 'secure.test:3128', HTTP_PROXY: 'http://plain.test' };
  assert.equal(proxyFor(at('https://api.test', 'http://own.test'), env)?.host, 'own.test');
  assert.equal(proxyFor(at('https://api.test'), env)?.href, 'http://secure.test:3128/');
  assert.equal(proxyFor(at('http://api.test'), env)?.host, 'plain.test');
  assert.equal(proxyFor(at('https://api.test'), { ...env, NO_PROXY: 'api.test' }), undefined);
  assert.equal(proxyFor(at('https://api.test'), {}), undefined);
  assert.throws(() => proxyFor(at('https://api.test'), { HTTPS_PROXY: 'socks5://a' }), /HTTPS_PROXY/);
});
