import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { authorizationAttributes, parseTarget } from './request-info.ts';

const cases: readonly (readonly [string, string])[] = [
  ['/api/v1/pods', ' v1 pods'],
  ['/api/v1/namespaces/a/pods/x/log', ' v1 pods ns=a x log'],
  ['/api/v1/namespaces/a', ' v1 namespaces ns=a a'],
  ['/api/v1/namespaces/a/finalize', ' v1 namespaces ns=a a finalize'],
  ['/api/v1/namespaces/a/status', ' v1 namespaces ns=a a status'],
  ['/apis/policy/v1/namespaces/a/poddisruptionbudgets', 'policy v1 poddisruptionbudgets ns=a'],
  ['/apis/node.k8s.io/v1/runtimeclasses/r', 'node.k8s.io v1 runtimeclasses r'],
  ['/api/v1/nodes/n/proxy/a%20b//c/', ' v1 nodes n proxy rest=/a%20b//c/'],
  ['/api/v1/namespaces/a/pods/https:x:80/proxy', ' v1 pods ns=a https:x:80 proxy'],
  ['/api/v1/pods/', ' v1 pods'],
  ['/api/v1/namespaces/%C3%BC/pods', ' v1 pods ns=ü'],
  ['/', 'other /'],
  ['/api', 'other /api'],
  ['/api/v1', 'other /api/v1'],
  ['/apis/g/v1', 'other /apis/g/v1'],
  ['/api/v1/pods/x/status/more', 'other /api/v1/pods/x/status/more'],
  ['/api/v1//pods', 'other /api/v1//pods'],
  ['*', 'garbled'],
  ['http://a/b', 'garbled'],
  ['/api/v1/%ff', 'garbled'],
  ['/api/v1/pods/a%2Fb', 'other /api/v1/pods/a/b'],
  ['/api/v1/nodes/n/proxy/a%2Fb', ' v1 nodes n proxy rest=/a%2Fb'],
  ['/api/v1/nodes/n%2Fm/proxy/x', 'other /api/v1/nodes/n/m/proxy/x'],
  ['/api%2Fv1/pods/x', 'other /api/v1/pods/x'],
  ['/api/v1/pods/a%00b', 'garbled'],
];

function shown(target: string): string {
  const { path } = parseTarget(target);
  if (path.kind === 'garbled') return 'garbled';
  if (path.kind === 'other') return `other ${path.path}`;
  const { group, version, resource, namespace, name, subresource, rest } = path;
  const parts = [
    namespace === undefined ? undefined : `ns=${namespace}`,
    name,
    subresource,
    rest === '' ? undefined : `rest=${rest}`,
  ];
  return [group, version, resource, ...parts.filter((part) => part !== undefined)].join(' ');
}

for (const [target, expected] of cases)
  test(`parses ${target} as ${expected}`, () => assert.equal(shown(target), expected));

test('separates the query from the request path', () => {
  const { path, query } = parseTarget('/api/v1/pods?a=1&a=2?&b=%20');
  assert.deepEqual([path.kind, query.getAll('a'), query.get('b')], ['resource', ['1', '2?'], ' ']);
});

test('parses random request targets without throwing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      parseTarget(text);
      parseTarget(`/api/v1/${text}`);
    }),
  );
});

function asked(method: string, target: string): Record<string, unknown> {
  return authorizationAttributes(method, parseTarget(target)) as unknown as Record<string, unknown>;
}

function selectedName(selector: string): unknown {
  return asked('GET', `/api/v1/secrets?fieldSelector=${encodeURIComponent(selector)}`)['name'];
}

test('uses the name of a metadata.name field selector as the name of the request', () => {
  assert.equal(selectedName('metadata.name=x'), 'x');
  assert.equal(selectedName('metadata.name==x'), 'x');
  assert.equal(selectedName('type=y,metadata.name=x'), 'x');
});

test('ignores malformed metadata.name selectors', () => {
  const rest = [
    'metadata.name!=x',
    'type!=y\\,metadata.name=x',
    'xmetadata.name=x',
    'metadata.name=',
    'metadata.name=..',
    'metadata.name=a/b',
    'metadata.name=\\q',
    '',
  ];
  for (const selector of rest) assert.equal(selectedName(selector), '', selector);
});

test('does not treat deletecollection with a name selector as a delete by name', () => {
  assert.equal(asked('DELETE', '/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx')['name'], '');
});

test('authorizes paths outside of resources as non-resource paths', () => {
  assert.deepEqual(asked('GET', '/healthz/'), { to: 'path', verb: 'get', path: '/healthz' });
  assert.deepEqual(asked('POST', '/api/v1%2Fpods'), { to: 'path', verb: 'post', path: '/api/v1/pods' });
});

test('treats every value of the watch parameter except false as true', () => {
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
