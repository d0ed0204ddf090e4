import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubelingError } from '../lib/index.ts';
import type { MessageType } from '../protocols/protobuf/index.ts';
import { ImageService, RuntimeService } from './gen/runtime.ts';
import { type CriOperation, operationNames } from './operations.ts';
import { checkResponse } from './responses.ts';

const sandbox = {
  status: { id: 'a', metadata: { name: 'n', namespace: 'ns', uid: 'u' }, createdAt: 1n },
};
const container = {
  status: {
    id: 'a',
    metadata: { name: 'n' },
    createdAt: 1n,
    image: { image: 'i' },
    imageRef: 'r',
  },
};
const conditions = [{ type: 'RuntimeReady' }, { type: 'NetworkReady' }];

/** A valid response of each checked call, and the fields that it must have. */
const responses: readonly (readonly [CriOperation, object, readonly string[]])[] = [
  [
    'version',
    { version: '0.1.0', runtimeName: 'x', runtimeVersion: '1', runtimeApiVersion: 'v1' },
    ['version', 'runtimeName', 'runtimeVersion', 'runtimeApiVersion'],
  ],
  ['runPodSandbox', { podSandboxId: 'a' }, ['podSandboxId']],
  ['createContainer', { containerId: 'a' }, ['containerId']],
  ['exec', { url: 'u' }, ['url']],
  ['attach', { url: 'u' }, ['url']],
  ['portForward', { url: 'u' }, ['url']],
  ['pullImage', { imageRef: 'r' }, ['imageRef']],
  ['podSandboxStatus', sandbox, ['status']],
  ['containerStatus', container, ['status']],
];

const methods = { ...RuntimeService.methods, ...ImageService.methods };

/** A response as the decoder returns it, with all fields. */
function whole(operation: CriOperation, response: object): object {
  return (methods[operation].response as MessageType<object>).create(response);
}

function missing(operation: CriOperation, response: object): readonly string[] {
  try {
    checkResponse(operation, whole(operation, response));
    return [];
  } catch (error) {
    assert.ok(error instanceof KubelingError && error.code === 'CRI_BAD_ANSWER', String(error));
    const fields = error.details['missing'] as readonly string[];
    assert.equal(
      error.message,
      `The runtime's response to ${operationNames[operation]} lacks ${fields.join(', ')}`,
    );
    return fields;
  }
}

for (const [operation, response, fields] of responses) {
  test(`a complete response to ${operation} is accepted, and each missing field is named`, () => {
    assert.deepEqual(missing(operation, response), []);
    for (const field of fields)
      assert.deepEqual(missing(operation, { ...response, [field]: undefined }), [field]);
  });
}

test('an error names all missing fields of a response', () => {
  assert.deepEqual(missing('version', {}), ['version', 'runtimeName', 'runtimeVersion', 'runtimeApiVersion']);
});

for (const [field, named] of [
  ['id', 'id'],
  ['metadata', 'metadata'],
  ['createdAt', 'createdAt'],
] as const) {
  test(`rejects a sandbox without ${field}`, () => {
    assert.deepEqual(missing('podSandboxStatus', { status: { ...sandbox.status, [field]: undefined } }), [
      named,
    ]);
  });
}

test('rejects empty sandbox metadata field by field', () => {
  assert.deepEqual(missing('podSandboxStatus', { status: { ...sandbox.status, metadata: {} } }), [
    'metadata.name',
    'metadata.namespace',
    'metadata.uid',
  ]);
});

for (const field of ['id', 'metadata', 'createdAt', 'imageRef', 'image'] as const) {
  test(`rejects a container without ${field}`, () => {
    assert.deepEqual(missing('containerStatus', { status: { ...container.status, [field]: undefined } }), [
      field,
    ]);
  });
}

test('rejects a container with empty metadata or image', () => {
  const status = { ...container.status, metadata: {}, image: {} };
  assert.deepEqual(missing('containerStatus', { status }), ['metadata.name', 'image']);
});

test('a status response must contain the conditions RuntimeReady and NetworkReady, whether true or false', () => {
  assert.deepEqual(missing('status', { status: { conditions } }), []);
  assert.deepEqual(missing('status', { status: { conditions: conditions.slice(1) } }), ['RuntimeReady']);
  assert.deepEqual(missing('status', {}), ['RuntimeReady', 'NetworkReady']);
});

test('a missing image is a valid response; an image without id or size is not', () => {
  assert.deepEqual(missing('imageStatus', {}), []);
  assert.deepEqual(missing('imageStatus', { image: { id: 'a', size: 1n } }), []);
  assert.deepEqual(missing('imageStatus', { image: {} }), ['id', 'size']);
});

test('accepts an empty response to a call whose response has no required fields', () => {
  for (const operation of [
    'listContainers',
    'listPodSandbox',
    'stopContainer',
    'execSync',
    'listImages',
  ] as const) {
    assert.deepEqual(missing(operation, {}), []);
  }
});
