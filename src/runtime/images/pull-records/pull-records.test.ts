import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../../../test/fakes/memory-runtime-files.ts';
import { VirtualClock } from '../../../../test/fakes/virtual-clock.ts';
import type { Image } from '../../../cri/index.ts';
import { collectLogs } from '../../../lib/index.ts';
import { type CredentialSource, pullCredential } from '../credentials/keyring.ts';
import type { VerificationPolicy } from './pull-records.ts';
import { PullRecords } from './pull-records.ts';
import { RecordFiles } from './record-files.ts';
import { encodeIntent, recordFileName } from './record-format.ts';

const image = 'r.io/team/app:1';
const ref = 'sha256:1';
const { signal } = new AbortController();

function secretOf(name: string, password: string, uid = `uid-${name}`) {
  const source: CredentialSource = { kind: 'secret', uid, namespace: 'ns', name };
  return pullCredential({ username: 'u', password, email: '' }, source);
}

const account = (name: string) =>
  pullCredential(
    { username: 'u', password: 'from plugin', email: '' },
    { kind: 'service-account', uid: `uid-${name}`, namespace: 'ns', name },
  );
const nodeLogin = pullCredential({ username: 'u', password: 'p', email: '' }, { kind: 'node' });

function rigOf(policy: VerificationPolicy = { kind: 'NeverVerifyPreloadedImages' }, store = mapFileStore()) {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const { logger } = logs;
  const files = new RecordFiles({ files: memoryRuntimeFiles(store), logger, rootDir: '/root' });
  const records = new PullRecords({ clock, logger, files, policy });
  const mayUse = (held: readonly ReturnType<typeof secretOf>[] = [], name = image) =>
    records.mayUse(name, ref, async () => held, signal);
  const pull = async (used: ReturnType<typeof secretOf> | 'anonymous', name = image) => {
    await records.begin(name, signal);
    await records.end(name, { kind: 'pulled', imageRef: ref, used });
  };
  return { clock, logs, store, records, mayUse, pull };
}

const listed = (id: string, ...repoTags: readonly string[]) =>
  ({ id, repoTags, repoDigests: [] }) as unknown as Image;

describe('access to a present image', () => {
  it('an image pulled with a secret is accessible to pods with that secret or the same login', async () => {
    const { pull, mayUse } = rigOf();
    await pull(secretOf('one', 'p'));
    assert.equal(await mayUse(), false, 'without a secret');
    assert.equal(await mayUse([secretOf('two', 'other')]), false, 'another login');
    assert.equal(await mayUse([nodeLogin]), false, 'a node login was not used for the pull');
    assert.equal(await mayUse([secretOf('one', 'p')]), true, 'the same');
    assert.equal(await mayUse([secretOf('one', 'rotated')]), true, 'the same secret with a new password');
    assert.equal(await mayUse([secretOf('two', 'rotated')]), true, 'the same login in another secret');
    assert.equal(await mayUse([secretOf('one', 'x', 'uid-new')]), false, 'a new secret with that name');
    assert.equal(
      await mayUse([secretOf('one', 'p')], 'r.io/other:1'),
      false,
      'the same login under another name',
    );
  });

  it('an image pulled with a service account is accessible to that account', async () => {
    const { pull, mayUse } = rigOf();
    await pull(account('one'));
    assert.equal(await mayUse([account('one')]), true);
    assert.equal(await mayUse([account('two')]), false);
  });

  it('an image pulled anonymously is accessible to all pods, even after a pull with a secret', async () => {
    for (const used of ['anonymous', nodeLogin] as const) {
      const { pull, mayUse } = rigOf();
      await pull(secretOf('one', 'p'));
      assert.equal(await mayUse(), false);
      await pull(used);
      assert.equal(await mayUse(), true);
    }
  });

  it('a preloaded image is accessible to all pods unless the policy verifies it', async () => {
    const allowed = (policy: VerificationPolicy) => rigOf(policy).mayUse();
    assert.equal(await allowed({ kind: 'NeverVerifyPreloadedImages' }), true);
    assert.equal(await allowed({ kind: 'NeverVerify' }), true);
    assert.equal(await allowed({ kind: 'AlwaysVerify' }), false);
    const kind = 'NeverVerifyAllowlistedImages';
    assert.equal(await allowed({ kind, allowlist: ['r.io/team/*'] }), true);
    assert.equal(await allowed({ kind, allowlist: ['r.io/team/app'] }), true);
    assert.equal(await allowed({ kind, allowlist: ['r.io/other'] }), false);
  });

  it('access to an image must be verified during and after its pull, unless the pull failed', async () => {
    const { records, mayUse } = rigOf();
    await records.begin(image, signal);
    assert.equal(await mayUse(), false);
    await records.end(image, { kind: 'failed' });
    assert.equal(await mayUse(), true);
    await records.begin(image, signal);
    await records.begin(image, signal);
    await records.end(image, { kind: 'failed' });
    assert.equal(await mayUse(), false, 'another pull is in flight');
    await records.end(image, { kind: 'unknown' });
    assert.equal(await mayUse(), false, 'the outcome is unknown');
  });

  it('access to an image with an unreadable record must be verified', async () => {
    const { pull, mayUse, store } = rigOf();
    await pull('anonymous');
    store.write(`/root/image_manager/pulled/${recordFileName(ref)}`, '{}');
    assert.equal(await mayUse(), false);
    await pull('anonymous');
    assert.equal(await mayUse(), true);
  });
});

describe('pull records', () => {
  it('replaces the record of an interrupted pull by one without credentials when the image is present', async () => {
    const store = mapFileStore();
    const first = rigOf(undefined, store);
    await first.records.begin('team/app', signal);
    await first.records.begin('r.io/absent:1', signal);
    const { records, mayUse } = rigOf(undefined, store);
    await records.open();
    await records.resolveInterrupted([listed(ref, 'docker.io/team/app:latest')], signal);
    assert.deepEqual(
      store.paths().filter((path) => path.includes('image_manager')),
      ['r.io/absent:1', ref].map(
        (key, at) => `/root/image_manager/${at === 0 ? 'pulling' : 'pulled'}/${recordFileName(key)}`,
      ),
    );
    assert.equal(await mayUse([], 'team/app'), false);
  });

  it('removes the pull records of removed images, except records changed after the images were listed', async () => {
    const { records, pull, clock, store } = rigOf();
    await pull('anonymous');
    await records.prune([], clock.now(), signal);
    assert.equal(store.paths().length, 1, 'the image was pulled after the listing');
    await clock.advance(1_000);
    await records.prune([listed(ref)], clock.now(), signal);
    assert.equal(store.paths().length, 1, 'the image is in use');
    await records.prune([], clock.now(), signal);
    assert.deepEqual(store.paths(), []);
  });

  it('removes the intent of an interrupted pull when two consecutive prunes find neither the image nor a running pull of it; keeps the intent of a running pull', async () => {
    const { records, clock, store } = rigOf();
    const prune = (...images: readonly Image[]) => records.prune(images, clock.now(), signal);
    await records.begin(image, signal);
    for (let round = 0; round < 3; round++) await prune();
    assert.equal(store.paths().length, 1, 'a pull is in flight');
    await records.end(image, { kind: 'unknown' });
    await prune();
    await records.begin(image, signal);
    await records.end(image, { kind: 'unknown' });
    await prune();
    assert.equal(store.paths().length, 1, 'another pull was started in between');
    await prune(listed(ref, image));
    await prune();
    assert.equal(store.paths().length, 1, 'the image was present at the last check');
    await prune();
    assert.deepEqual(store.paths(), []);
  });

  it('rewrites pull records of an older version at startup', async () => {
    const store = mapFileStore();
    const path = `/root/image_manager/pulling/${recordFileName('a')}`;
    store.write(path, encodeIntent('a').replace('v1beta1', 'v1alpha1'));
    await rigOf(undefined, store).records.open();
    assert.equal(store.read(path), encodeIntent('a'));
  });
});
