import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDockerHub, matchesRegistry, registryKey, repositoryOf } from './image-name.ts';

describe('registry keys', () => {
  it('registry keys match images by host, port and path prefix', () => {
    const cases: readonly (readonly [string, string, boolean])[] = [
      ['r.io', 'r.io/a/b', true],
      ['r.io/a', 'r.io/a/b', true],
      ['r.io/a', 'r.io/ab', true],
      ['r.io/b', 'r.io/a/b', false],
      ['r.io:5000', 'r.io:5000/a', true],
      ['r.io', 'r.io:5000/a', false],
      ['r.io:5000', 'r.io/a', false],
      ['*.r.io', 'a.r.io/x', true],
      ['*.r.io', 'a.b.r.io/x', false],
      ['*.r.io', 'r.io/x', false],
      ['*.*.io', 'a.b.io/x', true],
      ['app*.r.io', 'app12.r.io/x', true],
      ['app?.r.io', 'app12.r.io/x', false],
      ['[ab].r.io', 'b.r.io/x', true],
      ['[ab.r.io', 'a.r.io/x', false],
      ['r*', 'r.io/x', false],
    ];
    for (const [key, image, want] of cases)
      assert.equal(matchesRegistry(key, image), want, `${key} ${image}`);
  });

  it('registry keys are normalized without scheme and API version', () => {
    assert.equal(registryKey('https://index.docker.io/v1/'), 'index.docker.io');
    assert.equal(registryKey('http://r.io/v2/team/'), 'r.io/team/');
    assert.equal(registryKey('r.io/'), 'r.io');
    assert.equal(registryKey('r.io:5000/v1'), 'r.io:5000/v1');
  });

  it('registry keys match Docker Hub for images without a registry', () => {
    assert.equal(repositoryOf('busybox'), 'docker.io/library/busybox');
    assert.equal(repositoryOf('team/app:1'), 'docker.io/team/app');
    assert.equal(repositoryOf('index.docker.io/busybox'), 'docker.io/library/busybox');
    assert.equal(repositoryOf('localhost/a:1'), 'localhost/a');
    assert.equal(repositoryOf('r.io:5000/a/b:2@sha256:'.concat('a'.repeat(64))), 'r.io:5000/a/b');
    assert.ok(isDockerHub('docker.io/library/x') && isDockerHub('team/app') && isDockerHub('x'));
    assert.ok(!isDockerHub('r.io/x') && !isDockerHub('host:1/x'));
  });

  it('registry keys are matched in bounded time', () => {
    const name = `${'a'.repeat(240)}.io/x`;
    const began = process.threadCpuUsage();
    assert.ok(!matchesRegistry(`${'*a'.repeat(100)}b.io`, name));
    assert.ok(matchesRegistry(`${'*a'.repeat(100)}*.io`, name));
    assert.ok(process.threadCpuUsage(began).user < 10e6);
  });
});
