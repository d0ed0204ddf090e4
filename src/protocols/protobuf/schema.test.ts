import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubelingError } from '../../lib/errors.ts';
import { Schema } from './index.ts';

test('each line of a schema is one definition; spaces around it and empty lines are ignored', () => {
  const schema = new Schema(
    '\n\n  message Pair|1 key string|2 values repeated string  \n\tmessage Nothing\n',
  );
  const pair = schema.message<{ key: string; values: string[] }>('Pair');
  assert.equal(pair.name, 'Pair');
  assert.deepEqual(pair.create({}), { key: '', values: [] });
  assert.deepEqual(schema.message('Nothing').create({}), {});
});

test('messages of a schema may refer to each other and to themselves in any order', () => {
  const schema = new Schema('message A|1 b B|2 a A\nmessage B|1 a A');
  const type = schema.message<{ b: { a: { b: undefined; a: undefined } }; a: undefined }>('A');
  const message = { b: { a: {} } };
  assert.deepEqual(type.decode(type.encode(message)), {
    b: { a: { b: undefined, a: undefined } },
    a: undefined,
  });
});

test('names an undefined message when a schema uses it', () => {
  const missing = (error: unknown) =>
    error instanceof KubelingError &&
    error.code === 'BUG' &&
    error.message.includes('There is no message Nobody');
  assert.throws(() => new Schema('').message('Nobody').create({}), missing);
  const schema = new Schema('message A|1 b Nobody');
  assert.deepEqual(schema.message('A').create({}), { b: undefined });
  assert.throws(() => schema.message<{ b: object }>('A').encode({ b: {} }), missing);
});

test('types of the same name in two schemas are independent', () => {
  const first = new Schema('message A|1 x string').message<{ x: string }>('A');
  const second = new Schema('message A|1 y int32').message<{ y: number }>('A');
  assert.deepEqual(first.create({}), { x: '' });
  assert.deepEqual(second.create({}), { y: 0 });
});
