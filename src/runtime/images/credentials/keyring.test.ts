import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { parseDockerCfg } from './docker-config.ts';
import type { CredentialSource } from './keyring.ts';
import { Keyring } from './keyring.ts';

const node: CredentialSource = { kind: 'node' };

function keyringOf(...configs: readonly Readonly<Record<string, string>>[]): Keyring {
  const keyring = new Keyring();
  for (const config of configs) {
    const entries = Object.entries(config).map(([key, user]) => [key, { username: user, password: 'p' }]);
    keyring.add(node, parseDockerCfg(JSON.stringify(Object.fromEntries(entries)), 'x'));
  }
  return keyring;
}

const usersFor = (keyring: Keyring, image: string) => keyring.lookup(image).map(({ auth }) => auth.username);

describe('keyring', () => {
  it('returns all matching registry logins, the most specific registry first', () => {
    const keyring = keyringOf(
      { 'r.io': 'host', 'https://r.io/team': 'team', '*.io': 'glob' },
      { 'r.io': 'again', 'other.io': 'no' },
    );
    assert.deepEqual(usersFor(keyring, 'r.io/team/app'), ['team', 'host', 'again', 'glob']);
    assert.deepEqual(usersFor(keyring, 'r.io/app'), ['host', 'again', 'glob']);
    assert.deepEqual(usersFor(keyring, 'r.org/app'), []);
  });

  it('uses the Docker Hub login only for Docker Hub images', () => {
    const keyring = keyringOf({ 'https://index.docker.io/v1/': 'hub' });
    assert.deepEqual(usersFor(keyring, 'docker.io/library/busybox'), ['hub']);
    assert.deepEqual(usersFor(keyring, 'r.io/busybox'), []);
  });

  it('hashes a registry login over its JSON fields', () => {
    const keyring = new Keyring();
    const entry = { username: 'u&<>', password: 'p', email: 'e' };
    keyring.add(node, parseDockerCfg(JSON.stringify({ 'r.io': entry }), 'x'));
    const text = '{"username":"u\\u0026\\u003c\\u003e","password":"p","email":"e"}';
    const [found] = keyring.lookup('r.io/a');
    assert.equal(found?.hash, createHash('sha256').update(text).digest('hex'));
  });
});
