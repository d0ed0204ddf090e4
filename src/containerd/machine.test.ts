import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import {
  childEnvironment,
  findCniDir,
  findProgram,
  findTools,
  isSystemdFirst,
  mayLowerOomScore,
  programDirs,
} from './machine.ts';

const created: string[] = [];
let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'machine-'));
  created.push(dir);
});
after(async () => {
  for (const path of created) await rm(path, { recursive: true });
});

async function addProgram(path: string): Promise<void> {
  await mkdir(join(dir, path, '..'), { recursive: true });
  await writeFile(join(dir, path), '');
  await chmod(join(dir, path), 0o755);
}

describe('programDirs', () => {
  it('searches the directory of a given containerd first, then the PATH, then the usual directories', () => {
    const dirs = programDirs({ PATH: '/opt/bin:relative::/usr/bin' }, '/opt/containerd/bin/containerd');
    assert.deepEqual(dirs.slice(0, 3), ['/opt/containerd/bin', '/opt/bin', '/usr/bin']);
    assert(dirs.includes('/usr/sbin'));
    assert.equal(new Set(dirs).size, dirs.length);
  });
});

describe('childEnvironment', () => {
  it('passes only proxy and certificate variables on to containerd', () => {
    const env = { PATH: '/x', https_proxy: 'http://p', HOME: '/root', NOTIFY_SOCKET: '/run/n', TOKEN: 't' };
    assert.deepEqual(childEnvironment(env, ['/a', '/b']), {
      PATH: '/a:/b',
      https_proxy: 'http://p',
      HOME: '/root',
    });
  });
});

describe('findProgram', () => {
  it('returns the first executable file with this name in the given directories', async () => {
    await mkdir(join(dir, 'a/tool'), { recursive: true });
    await mkdir(join(dir, 'b'), { recursive: true });
    await writeFile(join(dir, 'b/tool'), '');
    await addProgram('c/tool');
    const dirs = ['a', 'b', 'c', 'd'].map((name) => join(dir, name));
    assert.equal(await findProgram('tool', dirs), join(dir, 'c/tool'));
    assert.equal(await findProgram('other', dirs), undefined);
  });
});

describe('findTools', () => {
  it('reports all missing programs in one error', async () => {
    await addProgram('bin/ctr');
    await assert.rejects(findTools([join(dir, 'bin')], join(dir, 'bin/containerd')), (error: Error) => {
      assert.match(
        error.message,
        /lacks: .*bin\/containerd; containerd-shim-runc-v2 .*; runc \(package runc\)/,
      );
      assert.doesNotMatch(error.message, /ctr \(package/);
      return true;
    });
  });
});

describe('findCniDir', () => {
  it('returns the first directory with all required plugins', async () => {
    for (const name of ['bridge', 'loopback', 'host-local']) await addProgram(`one/${name}`);
    for (const name of ['bridge', 'loopback', 'host-local', 'portmap']) await addProgram(`two/${name}`);
    assert.equal(await findCniDir([join(dir, 'one'), join(dir, 'two')]), join(dir, 'two'));
    assert.equal(await findCniDir([join(dir, 'one')]), undefined);
  });
});

describe('privileges of the process', () => {
  it('reads whether OOM scores may be lowered from the effective capabilities', async () => {
    await mkdir(join(dir, 'self'));
    for (const [mask, expected] of [
      ['000001ffffffffff', true],
      ['000001fffeffffff', false],
      ['0000000000000000', false],
    ] as const) {
      await writeFile(join(dir, 'self/status'), `Name:\tnode\nCapPrm:\t000001ffffffffff\nCapEff:\t${mask}\n`);
      assert.equal(await mayLowerOomScore(dir), expected);
    }
  });

  it('detects whether process 1 is systemd', async () => {
    assert.equal(await isSystemdFirst(dir), false);
    await mkdir(join(dir, '1'));
    await writeFile(join(dir, '1/comm'), 'systemd\n');
    assert.equal(await isSystemdFirst(dir), true);
  });
});
