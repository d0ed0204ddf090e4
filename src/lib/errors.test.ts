import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { asError, describeError, isKind, KubelingError, kindOf } from './errors.ts';

test('an error carries its code, kind, cause and details', () => {
  const cause = new Error('socket closed');
  const error = new KubelingError('CRI_UNAVAILABLE', 'Cannot list pods', {
    cause,
    details: { socket: '/s' },
  });
  assert.equal(error.code, 'CRI_UNAVAILABLE');
  assert.equal(error.kind, 'Unavailable');
  assert.equal(error.cause, cause);
  assert.deepEqual(error.details, { socket: '/s' });
  assert.equal(error.name, 'KubelingError');
});

test('an error without a cause has no cause property', () => {
  assert.equal('cause' in new KubelingError('BUG', 'x'), false);
});

test('an error that is not a KubelingError is a bug, except an abort', () => {
  assert.equal(kindOf(new TypeError('x')), 'Bug');
  assert.equal(kindOf('text'), 'Bug');
  assert.equal(kindOf(AbortSignal.abort().reason), 'Cancelled');
  assert.equal(isKind(new KubelingError('CANCELLED', 'x'), 'NotFound', 'Cancelled'), true);
  assert.equal(isKind(new KubelingError('CANCELLED', 'x'), 'NotFound'), false);
});

test('a description contains the causes without text that is already in it', () => {
  const root = new Error('connection refused');
  const middle = new Error('dial failed: connection refused', { cause: root });
  const top = new Error('Cannot reach the runtime', { cause: middle });
  assert.equal(describeError(top), 'Cannot reach the runtime: dial failed: connection refused');
});

test('a description of several errors names each', () => {
  const many = new AggregateError([new Error('v4 refused'), new Error('v6 refused')]);
  assert.equal(describeError(many), 'v4 refused; v6 refused');
  assert.equal(describeError(new AggregateError([new Error('x')], 'all failed')), 'all failed: x');
});

test('describes an error with a cyclic chain of causes', () => {
  const error = new Error('again');
  error.cause = error;
  assert.equal(describeError(error), 'again');
});

test('describes thrown values whose message cannot be read', () => {
  const broken = new Error('x');
  Object.defineProperty(broken, 'message', {
    get: () => {
      throw new Error('no');
    },
  });
  assert.equal(describeError(broken), 'an unprintable object');
  assert.equal(describeError(Object.create(null)), 'an unprintable object');
  assert.match(asError(Object.create(null)).message, /unprintable object/);
});

test('describeError and asError never throw for any thrown value', () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true }), (thrown) => {
      assert.equal(typeof describeError(thrown), 'string');
      assert.ok(asError(thrown) instanceof Error);
    }),
  );
});

test('asError returns an Error unchanged', () => {
  const error = new RangeError('x');
  assert.equal(asError(error), error);
});
