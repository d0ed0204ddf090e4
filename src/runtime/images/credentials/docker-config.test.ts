import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../../lib/index.ts';
import { NodeDockerConfig, parseDockerCfg, parseDockerConfigJson } from './docker-config.ts';

const login = (username: string, password: string, email = '') => ({ username, password, email });
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('docker configs', () => {
  it('reads docker configs from auths, or from the top level of a .dockercfg', () => {
    const entry = { username: 'u', password: 'p', email: 'e' };
    const newer = parseDockerConfigJson(JSON.stringify({ auths: { 'r.io': entry }, HttpHeaders: {} }), 'x');
    assert.deepEqual([...newer], [['r.io', login('u', 'p', 'e')]]);
    assert.deepEqual(parseDockerCfg(JSON.stringify({ 'r.io': entry }), 'x'), newer);
    assert.equal(parseDockerConfigJson('{}', 'x').size, 0);
  });

  it('decodes user and password from auth, which overrides the plain fields', () => {
    for (const text of [base64('user:p:w'), base64('user:p:w').replace(/=+$/, '')]) {
      const config = parseDockerCfg(JSON.stringify({ r: { auth: text, username: 'other' } }), 'x');
      assert.deepEqual(config.get('r'), login('user', 'p:w'));
    }
  });

  it('rejects invalid docker configs without their content in the error', () => {
    for (const text of [
      '{"auths": sesame',
      '[]',
      '{"auths": ["sesame"]}',
      '{"auths": {"r": "sesame"}}',
      '{"auths": {"r": {"username": 7}}}',
      '{"auths": {"r": {"auth": "!!sesame"}}}',
      `{"auths": {"r": {"auth": "${base64('sesame')}"}}}`,
      '{"auths": {"r": {"auth": "c2VzYW1lO"}}}',
    ]) {
      assert.throws(
        () => parseDockerConfigJson(text, 'the secret ns/s'),
        (error: Error) =>
          /^Cannot use the credentials of the secret ns\/s/.test(error.message) &&
          !/sesame|c2Vz/.test(error.message),
        text,
      );
    }
  });
});

const config = (user: string) =>
  JSON.stringify({ auths: { 'r.io': { username: user, password: 'sesame' } } });

function configOn(files: Map<string, string>) {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const read: string[] = [];
  const docker = new NodeDockerConfig({
    clock,
    logger: logs.logger,
    rootDir: '/root-dir',
    workingDir: '/cwd',
    homeDir: '/home/me',
    async readFile(path) {
      read.push(path);
      return files.get(path);
    },
  });
  const user = async () => (await docker.get()).get('r.io')?.username;
  return { clock, logs, read, user };
}

describe('docker config of the node', () => {
  it("searches the node's docker config in eight locations, .docker/config.json before .dockercfg", async () => {
    const { read, user } = configOn(new Map());
    assert.equal(await user(), undefined);
    assert.deepEqual(read, [
      '/root-dir/config.json',
      '/cwd/config.json',
      '/home/me/.docker/config.json',
      '/.docker/config.json',
      '/root-dir/.dockercfg',
      '/cwd/.dockercfg',
      '/home/me/.dockercfg',
      '/.dockercfg',
    ]);
  });

  it('searches the current directory for a docker config only if a current directory is given', async () => {
    const clock = new VirtualClock();
    const { logger } = collectLogs(clock);
    const read: string[] = [];
    const readFile = async (path: string) => {
      read.push(path);
      return undefined;
    };
    const deps = { clock, logger, rootDir: '/root-dir', workingDir: undefined, homeDir: undefined };
    await new NodeDockerConfig({ ...deps, readFile }).get();
    assert.deepEqual(read, [
      '/root-dir/config.json',
      '/.docker/config.json',
      '/root-dir/.dockercfg',
      '/.dockercfg',
    ]);
  });

  it('uses the first valid docker config; logs each invalid config without its content', async () => {
    const files = new Map([
      ['/root-dir/config.json', '{"auths": sesame'],
      ['/home/me/.docker/config.json', config('home')],
      ['/.docker/config.json', config('root')],
    ]);
    const { user, logs } = configOn(files);
    assert.equal(await user(), 'home');
    const reported = JSON.stringify([...logs.records]);
    assert.match(reported, /root-dir\/config\.json/);
    assert.doesNotMatch(reported, /sesame/);
  });

  it("reads the node's docker config again after five minutes", async () => {
    const files = new Map([['/cwd/config.json', config('old')]]);
    const { clock, user } = configOn(files);
    assert.equal(await user(), 'old');
    files.set('/cwd/config.json', config('new'));
    await clock.advance(299_000);
    assert.equal(await user(), 'old');
    await clock.advance(1_000);
    assert.equal(await user(), 'new');
  });
});
