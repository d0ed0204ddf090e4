import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseModuleLevels, Verbosity } from './verbosity.ts';

const from = (path: string) => () => ({ path, line: 1 });
const relist = from('file:///opt/kubeling/src/pleg/relist.ts');

test('logs lines up to the configured level, and no more verbose ones', () => {
  const verbosity = new Verbosity(2);
  assert.equal(verbosity.shows(2, relist), true);
  assert.equal(verbosity.shows(3, relist), false);
  verbosity.setLevel(3);
  assert.equal(verbosity.shows(3, relist), true);
  assert.equal(verbosity.level, 3);
});

test('a per-file level can only raise the verbosity of a file', () => {
  const verbosity = new Verbosity(1, parseModuleLevels('relist=4,other=0'));
  assert.equal(verbosity.shows(4, relist), true);
  assert.equal(verbosity.shows(5, relist), false);
  assert.equal(verbosity.shows(4, from('/src/pleg/cache.ts')), false);
  assert.equal(verbosity.shows(1, from('/src/other.ts')), true);
});

test('file patterns support wildcards, character classes and folders, and are otherwise literal', () => {
  const shows = (pattern: string, path: string) =>
    new Verbosity(0, parseModuleLevels(`${pattern}=1`)).shows(1, from(path));
  assert.equal(shows('rel*', '/src/pleg/relist.ts'), true);
  assert.equal(shows('r?list', '/src/pleg/relist.js'), true);
  assert.equal(shows('[pr]elist', '/src/pleg/relist.ts'), true);
  assert.equal(shows('pleg/*', '/src/pleg/relist.ts'), true);
  assert.equal(shows('pleg/*', '/src/status/relist.ts'), false);
  assert.equal(shows('*', '/src/pleg/relist.ts'), true);
  assert.equal(shows('r.list', '/src/pleg/relist.ts'), false);
  assert.equal(shows('relist.ts', '/src/pleg/relist.ts'), false);
  assert.equal(shows('[', '/src/['), true);
});

test('the first matching file pattern determines the level', () => {
  const verbosity = new Verbosity(0, parseModuleLevels('relist=2,rel*=5'));
  assert.equal(verbosity.shows(3, relist), false);
});

test('does not determine the caller when there are no file patterns', () => {
  const never = () => assert.fail('asked');
  assert.equal(new Verbosity(0).shows(4, never), false);
  assert.equal(new Verbosity(0, parseModuleLevels('x=3')).shows(4, never), false);
});

test('file patterns can be changed at run time', () => {
  const verbosity = new Verbosity(0, parseModuleLevels('relist=4'));
  assert.equal(verbosity.shows(4, relist), true);
  verbosity.setModules([]);
  assert.equal(verbosity.shows(4, relist), false);
});

test('rejects an invalid vmodule setting and names every invalid part', () => {
  assert.throws(() => parseModuleLevels('a=1,b,c=x,=2'), /"b", "c=x", "=2"/);
  assert.throws(() => new Verbosity(-1), { code: 'LOG_LEVEL_INVALID' });
  assert.throws(() => new Verbosity().setLevel(1.5), { code: 'LOG_LEVEL_INVALID' });
  assert.deepEqual(parseModuleLevels(' a=1, ,'), [{ pattern: 'a', level: 1 }]);
});
