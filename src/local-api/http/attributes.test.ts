import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attributesOf } from './attributes.ts';
import { readTarget } from './paths.ts';

function asked(method: string, target: string): Record<string, unknown> {
  return attributesOf(method, readTarget(target)) as unknown as Record<string, unknown>;
}

function selectedName(selector: string): unknown {
  return asked('GET', `/api/v1/secrets?fieldSelector=${encodeURIComponent(selector)}`)['name'];
}

test('a selector by name counts as the name, however it is written', () => {
  assert.equal(selectedName('metadata.name=x'), 'x');
  assert.equal(selectedName('metadata.name==x'), 'x');
  assert.equal(selectedName('type=y,metadata.name=x'), 'x');
});

test('what only looks like a selector by name is none', () => {
  const others = [
    'metadata.name!=x',
    'type!=y\\,metadata.name=x',
    'xmetadata.name=x',
    'metadata.name=',
    'metadata.name=..',
    'metadata.name=a/b',
    'metadata.name=\\q',
    '',
  ];
  for (const selector of others) assert.equal(selectedName(selector), '', selector);
});

test('many are deleted by nobody who may only delete one by its name', () => {
  assert.equal(asked('DELETE', '/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx')['name'], '');
});

test('a path that is no resource is asked about as a path', () => {
  assert.deepEqual(asked('GET', '/healthz/'), { to: 'path', verb: 'get', path: '/healthz' });
  assert.deepEqual(asked('POST', '/api/v1%2Fpods'), { to: 'path', verb: 'post', path: '/api/v1/pods' });
});

test('anything but a plain no is a wish to watch', () => {
  const verbs = [
    'watch',
    'watch=',
    'watch=true',
    'watch=yes',
    'watch=false',
    'watch=0',
    'watch=False',
    '',
  ].map((query) => asked('GET', `/api/v1/pods?${query}`)['verb']);
  assert.deepEqual(verbs, ['watch', 'watch', 'watch', 'watch', 'list', 'list', 'list', 'list']);
});
