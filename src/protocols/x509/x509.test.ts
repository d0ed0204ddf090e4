import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { createCertificate, createCertificateRequest, readCertificateRequest } from './create-certificate.ts';
import { der, derInteger, derOid, derTime, readDer, readOid, readOneDer, tags } from './der.ts';
import type { Identity } from './identity.ts';
import { canonicalIp, ipBytes, ipText, missingFrom } from './identity.ts';
import { readKeyPair, readLeaves } from './key-pair.ts';
import { keyPem, newEcKey, readPem, readPrivateKey, writePem } from './private-key.ts';

const identity: Identity = {
  commonName: 'system:node:née',
  organizations: ['system:nodes', 'more, "of" = them'],
  dnsNames: ['node-1', 'node-1.example.com'],
  ips: ['10.0.0.1', 'fd00::1'],
};

describe('DER encoding', () => {
  test('encodes lengths, integers and object identifiers in their only valid form', () => {
    assert.equal(der(tags.octetString, Buffer.alloc(127)).subarray(0, 2).toString('hex'), '047f');
    assert.equal(der(tags.octetString, Buffer.alloc(128)).subarray(0, 3).toString('hex'), '048180');
    assert.equal(der(tags.octetString, Buffer.alloc(70_000)).subarray(0, 5).toString('hex'), '0483011170');
    assert.equal(derInteger(Buffer.from([0, 0])).toString('hex'), '020100');
    assert.equal(derInteger(Buffer.from([0, 0x80])).toString('hex'), '02020080');
    assert.equal(derOid('1.2.840.113549.1.9.14').toString('hex'), '06092a864886f70d01090e');
  });

  test('decodes an object identifier as it was encoded', () => {
    for (const oid of ['1.2.840.113549.1.9.14', '2.5.29.17', '0.9.2342', '2.5.4.3']) {
      assert.equal(readOid(readOneDer(derOid(oid))), oid);
    }
  });

  test('encodes years from 2050 on with four digits', () => {
    assert.equal(
      derTime(Date.UTC(2049, 11, 31, 23, 59, 59))
        .subarray(2)
        .toString(),
      '491231235959Z',
    );
    assert.equal(
      derTime(Date.UTC(2050, 0, 1))
        .subarray(2)
        .toString(),
      '20500101000000Z',
    );
  });

  test('rejects truncated DER input and never reads past its end', () => {
    const whole = der(tags.sequence, derInteger(Buffer.from([1])), der(tags.octetString, Buffer.alloc(200)));
    for (let length = 1; length < whole.length; length++) {
      assert.throws(() => readDer(whole.subarray(0, length)), { code: 'CERTIFICATE_INVALID' });
    }
    assert.throws(() => readDer(Buffer.from([0x30, 0x80, 0, 0])), { code: 'CERTIFICATE_INVALID' });
    assert.throws(() => readDer(Buffer.from([0x30, 0x85, 1, 1, 1, 1, 1])), { code: 'CERTIFICATE_INVALID' });
  });
});

describe('PEM parsing', () => {
  test('finds PEM blocks between other text, with either line end, and skips their headers', () => {
    const text = `hello\r\n${writePem({ label: 'A B', der: Buffer.alloc(100, 7) }).replaceAll('\n', '\r\n')}there
-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED

AQID
-----END RSA PRIVATE KEY-----`;
    assert.deepEqual(readPem(text), [
      { label: 'A B', der: Buffer.alloc(100, 7) },
      { label: 'RSA PRIVATE KEY', der: Buffer.from([1, 2, 3]) },
    ]);
  });
});

describe('IP addresses in certificates', () => {
  test('converts an IP address to its only canonical form', () => {
    const spellings: readonly (readonly [string, string | undefined])[] = [
      ['10.1.2.3', '10.1.2.3'],
      ['::ffff:10.1.2.3', '10.1.2.3'],
      ['FD00:0:0:0:0:0:0:1', 'fd00::1'],
      ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
      ['::', '::'],
      ['::1', '::1'],
      ['1::', '1::'],
      ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
      ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
      ['fe80::1%eth0', undefined],
      ['node', undefined],
      ['300.1.1.1', undefined],
    ];
    for (const [text, expected] of spellings) assert.equal(canonicalIp(text), expected, text);
    assert.equal(ipText(Buffer.alloc(5)), undefined);
    assert.equal(ipBytes('fd00::1')?.length, 16);
  });
});

describe('certificate requests', () => {
  for (const [kind, key] of [
    ['P-256', newEcKey()],
    ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey],
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
    ['Ed25519', generateKeyPairSync('ed25519').privateKey],
  ] as const) {
    test(`a request with a ${kind} key contains its identity`, () => {
      const read = readCertificateRequest(createCertificateRequest(identity, key));
      assert.deepEqual(read.identity, identity);
    });
  }

  test('parses a certificate request without alternative names', () => {
    const plain = { ...identity, dnsNames: [], ips: [] };
    assert.deepEqual(readCertificateRequest(createCertificateRequest(plain, newEcKey())).identity, plain);
  });

  test('rejects a certificate request with a changed byte', () => {
    const [block] = readPem(createCertificateRequest(identity, newEcKey()));
    assert.ok(block);
    const at = block.der.indexOf('node-1.example');
    block.der[at] = 'x'.charCodeAt(0);
    assert.throws(() => readCertificateRequest(writePem(block)), /signature is wrong/);
  });

  test('rejects a certificate request with a key of an unsupported type', () => {
    const key = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey;
    assert.throws(() => createCertificateRequest(identity, key), { code: 'CERTIFICATE_INVALID' });
  });
});

describe('certificates', () => {
  const key = newEcKey();
  const subject = { commonName: 'ca', organizations: [] };
  const pem = createCertificate(
    {
      identity,
      key,
      notBeforeMs: Date.UTC(2026, 0, 1),
      notAfterMs: Date.UTC(2056, 0, 1),
      uses: ['digital-signature', 'key-encipherment'],
      extendedUses: ['server-auth'],
      role: 'leaf',
    },
    { subject, key },
  );

  test('Node.js parses the identity of a created certificate', () => {
    const read = new X509Certificate(pem);
    assert.equal(read.subject, 'O=system:nodes\nO=more\\, \\"of\\" = them\nCN=system:node:née');
    assert.equal(
      read.subjectAltName,
      'DNS:node-1, DNS:node-1.example.com, IP Address:10.0.0.1, IP Address:FD00:0:0:0:0:0:0:1',
    );
    assert.equal(read.validTo, 'Jan  1 00:00:00 2056 GMT');
    assert.deepEqual(read.keyUsage, ['1.3.6.1.5.5.7.3.1']);
    assert.equal(read.ca, false);
    assert.ok(read.verify(read.publicKey));
    assert.ok(read.checkIP('10.0.0.1'));
  });

  test('parses the identity of a created certificate', () => {
    const { leaf } = readKeyPair({ certificate: pem, key: keyPem(key), from: 'test' });
    const { commonName, organizations, dnsNames, ips, notBeforeMs, notAfterMs, issuerName } = leaf;
    assert.deepEqual({ commonName, organizations, dnsNames, ips }, identity);
    assert.deepEqual([notBeforeMs, notAfterMs], [Date.UTC(2026, 0, 1), Date.UTC(2056, 0, 1)]);
    assert.equal(issuerName, 'ca');
  });

  test('rejects a certificate and key that do not match or are invalid, and names the file', () => {
    const wrong = [
      { certificate: pem, key: keyPem(newEcKey()), from: '/x/a.pem' },
      { certificate: pem, key: 'nothing', from: '/x/a.pem' },
      { certificate: 'nothing', key: keyPem(key), from: '/x/a.pem' },
      {
        certificate: writePem({ label: 'CERTIFICATE', der: Buffer.from([1]) }),
        key: keyPem(key),
        from: '/x/a.pem',
      },
    ];
    for (const texts of wrong)
      assert.throws(() => readKeyPair(texts), { code: 'CERTIFICATE_INVALID', message: /\/x\/a\.pem/ });
  });

  test('encodes private keys in the format of the Go kubelet', () => {
    assert.match(keyPem(key), /BEGIN EC PRIVATE KEY/);
    assert.match(
      keyPem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
      /BEGIN RSA PRIVATE KEY/,
    );
    assert.ok(readPrivateKey(pem + keyPem(key))?.equals(key));
  });

  test('lists the names that a certificate lacks', () => {
    const [leaf] = readLeaves(pem, 'test');
    assert.ok(leaf);
    assert.deepEqual(missingFrom(leaf, identity), []);
    const more = {
      ...identity,
      ips: ['10.0.0.1', '10.0.0.2'],
      commonName: 'other',
      organizations: [],
      dnsNames: ['n'],
    };
    assert.deepEqual(missingFrom(leaf, more), [
      'the common name other',
      'the DNS name n',
      'the address 10.0.0.2',
    ]);
  });
});
