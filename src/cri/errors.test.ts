import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelledError, type ErrorCode, type ErrorKind, KubelingError } from '../lib/index.ts';
import { type GrpcCode, GrpcError } from '../protocols/grpc/index.ts';
import { translateError } from './errors.ts';

const open = new AbortController().signal;

const table: { readonly [Code in GrpcCode]: readonly [ErrorCode, ErrorKind] } = {
  OK: ['BUG', 'Bug'],
  CANCELLED: ['CANCELLED', 'Cancelled'],
  UNKNOWN: ['CRI_FAILED', 'Failed'],
  INVALID_ARGUMENT: ['CRI_INVALID', 'Invalid'],
  DEADLINE_EXCEEDED: ['CRI_DEADLINE', 'DeadlineExceeded'],
  NOT_FOUND: ['CRI_NOT_FOUND', 'NotFound'],
  ALREADY_EXISTS: ['CRI_ALREADY_EXISTS', 'Conflict'],
  PERMISSION_DENIED: ['CRI_DENIED', 'Denied'],
  RESOURCE_EXHAUSTED: ['CRI_EXHAUSTED', 'Unavailable'],
  FAILED_PRECONDITION: ['CRI_FAILED', 'Failed'],
  ABORTED: ['CRI_FAILED', 'Failed'],
  OUT_OF_RANGE: ['CRI_INVALID', 'Invalid'],
  UNIMPLEMENTED: ['CRI_UNSUPPORTED', 'Unsupported'],
  INTERNAL: ['CRI_FAILED', 'Failed'],
  UNAVAILABLE: ['CRI_UNAVAILABLE', 'Unavailable'],
  DATA_LOSS: ['CRI_FAILED', 'Failed'],
  UNAUTHENTICATED: ['CRI_DENIED', 'Denied'],
};

for (const [grpcCode, [code, kind]] of Object.entries(table)) {
  test(`the gRPC status ${grpcCode} becomes the error code ${code} with the runtime's message`, () => {
    const cause = new GrpcError(grpcCode as GrpcCode, 'the reason');
    const error = translateError('startContainer', cause, open);
    assert.equal(error.code, code);
    assert.equal(error.kind, kind);
    assert.equal(error.message, 'the reason');
    assert.equal(error.cause, cause);
    assert.deepEqual(error.details, { operation: 'start_container', grpcCode });
  });
}

test('distinguishes the message size limit from other exceeded limits', () => {
  for (const message of [
    'The message is larger than the limit: 17000000 bytes, limit 16777216',
    'grpc: received message larger than max (17000000 vs. 16777216)',
    'trying to send message larger than max (17000000 vs. 16777216)',
  ]) {
    const error = translateError('listContainers', new GrpcError('RESOURCE_EXHAUSTED', message), open);
    assert.equal(error.code, 'CRI_TOO_LARGE');
  }
});

test('a deadline of kubeling itself becomes CRI_DEADLINE', () => {
  const cause = new KubelingError('DEADLINE_EXCEEDED', 'Cannot finish within 5 ms');
  assert.equal(translateError('version', cause, open).code, 'CRI_DEADLINE');
});

test('a command timeout becomes CRI_EXEC_TIMEOUT whatever its message and gRPC code', () => {
  for (const cause of [
    new GrpcError('DEADLINE_EXCEEDED', 'x'),
    new KubelingError('DEADLINE_EXCEEDED', 'x'),
    new GrpcError('UNKNOWN', 'failed to exec in container: timeout 1s exceeded: context deadline exceeded'),
    new GrpcError('UNKNOWN', 'command: timeout 1.5s exceeded'),
    new GrpcError('INTERNAL', 'context deadline exceeded'),
  ]) {
    const error = translateError('execSync', cause, open);
    assert.equal(error.code, 'CRI_EXEC_TIMEOUT', cause.message);
    assert.equal(error.kind, 'DeadlineExceeded');
    assert.ok(error.message.startsWith('command timed out: '));
  }
});

test('other failures of a command, and timeouts of other calls, do not become CRI_EXEC_TIMEOUT', () => {
  assert.equal(
    translateError('execSync', new GrpcError('NOT_FOUND', 'no such container'), open).code,
    'CRI_NOT_FOUND',
  );
  const other = new GrpcError('UNKNOWN', 'context deadline exceeded');
  assert.equal(translateError('startContainer', other, open).code, 'CRI_FAILED');
});

test('converting a KubelingError returns it unchanged', () => {
  for (const error of [
    new KubelingError('CRI_BAD_ANSWER', 'x'),
    new KubelingError('BUG', 'y'),
    cancelledError('z'),
  ]) {
    assert.equal(translateError('version', error, open), error);
  }
});

test("an abort of the caller's signal becomes a cancellation", () => {
  for (const reason of [new Error('shutting down'), 'text', undefined]) {
    const controller = new AbortController();
    controller.abort(reason);
    const { signal } = controller;
    assert.equal(translateError('version', signal.reason, signal).code, 'CANCELLED');
  }
});

test("a timeout of the caller's signal becomes a deadline error", () => {
  const late = new DOMException('late', 'TimeoutError');
  assert.equal(translateError('version', late, AbortSignal.abort(late)).code, 'CRI_DEADLINE');
});

test('any other error becomes CRI_FAILED with the message of that error', () => {
  const error = translateError('version', new TypeError('oops'), open);
  assert.deepEqual([error.code, error.message], ['CRI_FAILED', 'oops']);
  assert.equal(translateError('version', 'text', open).message, 'text');
});

test('a runtime that responds but is still starting is CRI_UNAVAILABLE', () => {
  const cause = new GrpcError('UNKNOWN', 'server is not initialized yet');
  assert.equal(translateError('containerStatus', cause, open).code, 'CRI_UNAVAILABLE');
});
