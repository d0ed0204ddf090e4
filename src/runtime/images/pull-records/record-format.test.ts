import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeIntent, decodeRecord, encodeIntent, encodeRecord, recordFileName } from './record-format.ts';

const record =
  '{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"testimageref","credentialMapping":{"docker.io/testing/test":{"kubernetesSecrets":[{"uid":"u1","namespace":"ns","name":"n","credentialHash":"h"}]},"r.io/a":{"nodePodsAccessible":true},"r.io/b":{"kubernetesServiceAccounts":[{"uid":"u2","namespace":"ns","name":"sa"}]}}}\n';

describe('pull records on disk', () => {
  it('pull records are byte-identical to those of the Go kubelet', () => {
    assert.equal(encodeRecord(decodeRecord(record).value), record);
    assert.equal(
      encodeIntent('docker.io/testing/test:latest'),
      '{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"docker.io/testing/test:latest"}\n',
    );
    assert.equal(
      recordFileName('docker.io/testing/test:latest'),
      'sha256-aef2af226629a35d5f3ef0fdbb29fdbebf038d0acd8850590e8c48e1e283aa56',
    );
    assert.equal(
      encodeRecord({ lastUpdatedMs: 0, imageRef: 'x', credentialMapping: new Map() }),
      '{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"1970-01-01T00:00:00Z","imageRef":"x"}\n',
    );
  });

  it('reads pull records of an earlier version', () => {
    const older = record.replace('v1beta1', 'v1alpha1');
    assert.equal(decodeRecord(older).version, 'older');
    assert.deepEqual(decodeRecord(older).value, decodeRecord(record).value);
    const intent = encodeIntent('a').replace('v1beta1', 'v1alpha1');
    assert.deepEqual(decodeIntent(intent), { value: 'a', version: 'older' });
  });

  it('rejects pull records with unknown fields', () => {
    for (const text of [
      '',
      '[]',
      record.replace('ImagePulledRecord', 'Other'),
      record.replace('v1beta1', 'v2'),
      record.replace('"imageRef"', '"onlyFor":"x","imageRef"'),
      record.replace('"nodePodsAccessible":true', '"nodePodsAccessible":"yes"'),
      record.replace('"credentialHash":"h"', '"expires":"now"'),
    ]) {
      assert.throws(() => decodeRecord(text), { code: 'FILE_CORRUPT' }, text);
    }
  });
});
