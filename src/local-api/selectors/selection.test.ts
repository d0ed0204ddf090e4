import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adminUser } from '../../../test/fakes/api-users.ts';
import { apiResources } from '../../api/index.ts';
import { StatusError } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { labelTests } from './label-selector.ts';
import { fieldRequirements, requiredFieldValue, selection } from './selection.ts';

const isRefused = (message?: string) => (error: unknown) =>
  error instanceof StatusError &&
  error.status.code === 400 &&
  (message === undefined || error.status.message === message);

function matches(selector: string, labels: Record<string, string>): boolean {
  return labelTests(selector).every((test) => test(labels));
}

test('evaluates each operator of a label selector', () => {
  const web = { app: 'web', 'example.com/tier': 'x', n: '5' };
  for (const selector of [
    '',
    'app=web',
    'app==web',
    'app = web , n',
    'app!=db',
    'none!=x',
    'app in (web, db)',
    'app in (web)',
    'app notin (db)',
    'none notin (x)',
    'example.com/tier',
    '!none',
    'none!=',
    'n>4',
    'n<6',
    'app=web,example.com/tier in (x),!none',
  ])
    assert.ok(matches(selector, web), selector);
  for (const selector of [
    'app=db',
    'app!=web',
    'app in (db)',
    'none in ()',
    'app notin (web)',
    'none',
    '!app',
    'n>5',
    'none>1',
    'app=',
    'none=',
  ])
    assert.ok(!matches(selector, web), selector);
  assert.ok(matches('in in (in)', { in: 'in' }));
  assert.ok(matches('empty in (,a)', { empty: '' }));
  assert.ok(!matches('constructor', {}));
});

test('rejects invalid label selectors with the message of the API server', () => {
  const bad = (message: string) => `unable to parse requirement: ${message}`;
  for (const [selector, message] of [
    ['a b c', bad("found 'b', expected: in, notin, =, ==, !=, gt, lt")],
    ['a=b=c', "found '=', expected: ',' or 'end of string'"],
    ['!a=b', "found '=', expected: ',' or 'end of string'"],
    ['=x', "found '=', expected: !, identifier, or 'end of string'"],
    ['(a)', "found '(', expected: !, identifier, or 'end of string'"],
    [',', "found ',', expected: !, identifier, or 'end of string'"],
    ['a,', "found '', expected: identifier after ','"],
    ['a in b', bad("found 'b' expected: '('")],
    ['a in (b', bad("found '', expected: ',' or ')'")],
    ['!', bad("found '', expected: identifier")],
    ['a>x', bad(`values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`)],
    ['a=-', undefined],
    ['a/b/c', undefined],
    [
      `a=${'x'.repeat(64)}`,
      bad(`values[0][a]: Invalid value: "${'x'.repeat(64)}": must be no more than 63 bytes`),
    ],
  ] as const)
    assert.throws(() => labelTests(selector), isRefused(message), selector);
});

test('evaluates field selectors with escaped values', () => {
  assert.deepEqual(fieldRequirements('a.b=c,d!=e,f==g,h='), [
    { path: 'a.b', operator: '=', value: 'c' },
    { path: 'd', operator: '!=', value: 'e' },
    { path: 'f', operator: '=', value: 'g' },
    { path: 'h', operator: '=', value: '' },
  ]);
  assert.deepEqual(fieldRequirements('a=b\\,c\\=d\\\\'), [{ path: 'a', operator: '=', value: 'b,c=d\\' }]);
  assert.throws(() => fieldRequirements('a=b=c'), /unescaped character in value: 61/);
  assert.deepEqual(fieldRequirements(undefined), []);
  assert.equal(requiredFieldValue('a=1,metadata.name=x', 'metadata.name'), 'x');
  assert.equal(requiredFieldValue('metadata.name!=x', 'metadata.name'), undefined);
  assert.throws(
    () => fieldRequirements('nonsense'),
    isRefused("invalid selector: 'nonsense'; can't understand 'nonsense'"),
  );
  assert.throws(() => fieldRequirements('a=\\x'), isRefused());
});

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec: { nodeName: 'n1' },
} as StoredObject;

function isSelected(fieldSelector: string, fieldSelectors = ['spec.nodeName', 'spec.hostNetwork']): boolean {
  const request = { user: adminUser, verb: 'list', resource: apiResources.pods, fieldSelector } as const;
  return selection(request, { fieldSelectors }).test(pod);
}

test('treats a missing field as its zero value in field selectors', () => {
  assert.ok(isSelected('spec.nodeName=n1,metadata.name=a,metadata.namespace=n'));
  assert.ok(isSelected('spec.hostNetwork=false'));
  assert.ok(!isSelected('spec.nodeName='));
  assert.ok(isSelected('spec.nodeName!='));
});

test('rejects a field selector for an unsupported field with the error message of the selected kind', () => {
  assert.throws(() => isSelected('spec.image=x'), isRefused('field label not supported: spec.image'));
  assert.throws(
    () => isSelected('spec.image=x', []),
    isRefused('"spec.image" is not a known field selector: only "metadata.name", "metadata.namespace"'),
  );
});
