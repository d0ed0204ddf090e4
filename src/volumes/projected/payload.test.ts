import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../pods/index.ts';
import { downwardPayload } from './downward-payload.ts';
import { checkedPayload, joinMessages, type Payload, PayloadBudget, payloadDigest } from './payload.ts';
import { configMapPayload, DecodedValues, secretPayload } from './payload-sources.ts';

const file = { data: Buffer.from('x'), mode: 0o644 };
const of = (...paths: readonly string[]) => new Map(paths.map((path) => [path, file]));

const checked = (payload: Payload) => checkedPayload(payload, PayloadBudget.ofPod().ofVolume());

describe('the file paths of a payload', () => {
  const refused: readonly (readonly [string, string])[] = [
    ['', 'invalid path: must not be empty: ""'],
    ['/etc/passwd', 'invalid path: must be relative path: /etc/passwd'],
    ['x'.repeat(4097), 'invalid path: must be less than or equal to 4096 characters'],
    ['a/../../b', "invalid path: must not contain '..': a/../../b"],
    ['..', "invalid path: must not contain '..': .."],
    ['é'.repeat(128), 'invalid path: filenames must be less than or equal to 255 characters'],
    ['..data', "invalid path: must not start with '..': ..data"],
    ['./..data_tmp', "invalid path: must not start with '..': ./..data_tmp"],
    ['./', 'invalid path: must name a file: "./"'],
    ['a\0b', 'invalid path: must name a file: "a\\u0000b"'],
    ['a/'.repeat(33), `invalid path: must have at most 32 steps: ${'a/'.repeat(33).slice(0, 255)}`],
  ];
  for (const [path, message] of refused) {
    it(`rejects the file path ${JSON.stringify(path.slice(0, 20))} of a payload`, () => {
      assert.throws(() => checked(of(path)), { code: 'VOLUME_UNUSABLE', message });
    });
  }

  it('normalizes and sorts the file paths of a payload', () => {
    assert.deepEqual(
      [...checked(of('z', './a//b/', 'a/..c', '.hidden')).keys()],
      ['.hidden', 'a/..c', 'a/b', 'z'],
    );
  });

  it('rejects a payload in which a path leads through another file', () => {
    const message = 'invalid path: must not go through the file "a": a/b';
    assert.throws(() => checked(of('a/b', 'a')), { message });
    assert.throws(() => checked(of('a/b', 'a-b', 'a.b/c', 'a')), { message });
    assert.doesNotThrow(() => checked(of('a/b', 'a-b', 'a/c/d', 'ab')));
  });
});

describe('the files of a ConfigMap or Secret volume', () => {
  const all = {
    items: [],
    defaultMode: 0o640,
    presence: 'required',
    budget: PayloadBudget.ofPod().ofVolume(),
    values: new DecodedValues(),
  } as const;
  const configMap = {
    data: { text: 'words' },
    binaryData: { raw: Buffer.from([0, 255]).toString('base64') },
  };

  it('creates a file for each key of data and binaryData if there are no items', () => {
    const payload = configMapPayload(configMap, all);
    assert.deepEqual([...payload.keys()].sort(), ['raw', 'text']);
    assert.deepEqual(payload.get('raw'), { data: Buffer.from([0, 255]), mode: 0o640 });
  });

  it('uses the paths and modes of the items for the files', () => {
    const items = [
      { key: 'raw', path: 'deep/raw', mode: 0o400 },
      { key: 'text', path: 'one' },
      { key: 'text', path: 'two' },
    ];
    const payload = configMapPayload(configMap, { ...all, items });
    const modes = [...payload].map(([path, { mode }]) => [path, mode]);
    assert.deepEqual(modes, [
      ['deep/raw', 0o400],
      ['one', 0o640],
      ['two', 0o640],
    ]);
  });

  it('rejects a missing key unless the source is optional', () => {
    const items = [{ key: 'k', path: 'p' }];
    const optional = { ...all, items, presence: 'optional' } as const;
    const missingInConfigMap = { message: 'configmap references non-existent config key: k' };
    assert.throws(() => configMapPayload(configMap, { ...all, items }), missingInConfigMap);
    const missingInSecret = { message: 'references non-existent secret key: k' };
    assert.throws(() => secretPayload({}, { ...all, items }), missingInSecret);
    assert.equal(configMapPayload(configMap, optional).size, 0);
    assert.equal(secretPayload(undefined, optional).size, 0);
  });
});

describe('the digest of a payload', () => {
  it('computes different digests for different payloads', () => {
    const digests = [
      payloadDigest(of('a')),
      payloadDigest(of('b')),
      payloadDigest(new Map([['a', { ...file, mode: 0o600 }]])),
      payloadDigest(new Map([['a', { ...file, owner: 0 }]])),
      payloadDigest(of('a'), ['nested']),
      payloadDigest(new Map()),
    ];
    assert.equal(new Set(digests).size, digests.length);
    assert.equal(payloadDigest(of('a')), digests[0]);
  });
});

describe('joining the messages of several problems', () => {
  it('joins messages without duplicates', () => {
    assert.equal(joinMessages(['a', 'a']), 'a');
    assert.equal(joinMessages(['a', 'b', 'a']), '[a, b]');
  });
});

describe('the budget of a payload', () => {
  const mebibyte = 1024 * 1024;
  const large = { data: { key: Buffer.alloc(mebibyte).toString('base64') } };
  const items = Array.from({ length: 9 }, (_, index) => ({ key: 'key', path: `file-${index}` }));
  const values = new DecodedValues();
  const mapping = { items, defaultMode: 0o644, presence: 'required', values } as const;
  const ofVolume = {
    code: 'VOLUME_UNUSABLE',
    message: /content of the volume must not exceed 8 MiB in 16384 files and directories/,
  };

  it('rejects a volume whose items together exceed the size limit because they select one large key many times', () => {
    assert.throws(
      () => secretPayload(large, { ...mapping, budget: PayloadBudget.ofPod().ofVolume() }),
      ofVolume,
    );
  });

  it('rejects a volume with more files than the limit', () => {
    const many = Array.from({ length: 16_385 }, (_, index) => ({ key: 'key', path: `f${index}` }));
    const budget = PayloadBudget.ofPod().ofVolume();
    assert.throws(
      () => configMapPayload({ data: { key: '' } }, { ...mapping, items: many, budget }),
      ofVolume,
    );
  });

  it('counts each directory of a volume once, and rejects more files and directories than the limit', () => {
    const tree = (files: number, steps: number) =>
      of(...Array.from({ length: files }, (_, index) => `${index}${'/a'.repeat(steps)}`));
    assert.equal(checked(tree(500, 31)).size, 500);
    assert.throws(() => checked(tree(600, 31)), ofVolume);
    const shared = Array.from({ length: 10_000 }, (_, index) => `${'a/'.repeat(30)}${index}`);
    assert.equal(checked(of(...shared)).size, 10_000);
  });

  it('applies the limits to all payload volumes of a pod together', () => {
    const pod = PayloadBudget.ofPod();
    const fill = () => secretPayload(large, { ...mapping, items: items.slice(0, 8), budget: pod.ofVolume() });
    for (let volume = 0; volume < 4; volume++) assert.equal(fill().size, 8);
    assert.throws(fill, { message: /content of the volumes of the pod must not exceed 32 MiB/ });
  });

  it('builds the text of all labels once per volume, even if many items select it', () => {
    let created = 0;
    const values = {
      field: () => {
        created++;
        return 'labels';
      },
      resource: () => '',
    };
    const fieldRef = { fieldPath: 'metadata.labels' };
    const downward = Array.from({ length: 1_000 }, (_, index) => ({ path: `f${index}`, fieldRef }));
    const budget = PayloadBudget.ofPod().ofVolume();
    const payload = downwardPayload({} as Pod, downward, { defaultMode: 0o644, values, budget });
    assert.deepEqual([payload.size, created], [1_000, 1]);
  });
});

describe('the keys of an object', () => {
  it('decodes only the keys that items select, each once for all sources of a volume', () => {
    let decoded = 0;
    const data = new Proxy<Record<string, string>>(
      { one: 'MQ==', two: 'Mg==' },
      {
        get: (target, key) => {
          decoded++;
          return Reflect.get(target, key);
        },
      },
    );
    const mapping = {
      items: [
        { key: 'one', path: 'a' },
        { key: 'one', path: 'b' },
      ],
      defaultMode: 0o644,
      presence: 'optional',
      budget: PayloadBudget.ofPod().ofVolume(),
      values: new DecodedValues(),
    } as const;
    const secret = { data };
    for (let source = 0; source < 3; source++) {
      assert.equal(secretPayload(secret, mapping).get('b')?.data.toString(), '1');
      const missing = [
        { key: 'zz', path: 'c' },
        { key: 'constructor', path: 'd' },
      ];
      assert.equal(secretPayload(secret, { ...mapping, items: missing }).size, 0);
    }
    assert.equal(decoded, 1);
  });
});
