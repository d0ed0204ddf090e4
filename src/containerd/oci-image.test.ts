import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { busyboxImage } from './busybox-image.ts';
import { buildImage, type ImageSpec, imageArchitecture } from './oci-image.ts';
import { pauseImage } from './pause-image.ts';
import { pauseProgram } from './pause-program.ts';

/** Returns the regular files of a tar archive by name; long names are not supported. */
function filesOf(archive: Uint8Array): Map<string, Buffer> {
  const bytes = Buffer.from(archive);
  const files = new Map<string, Buffer>();
  for (let at = 0; bytes[at] !== 0; ) {
    const name = bytes.toString('latin1', at, at + 100).replace(/\0.*$/s, '');
    const size = Number.parseInt(bytes.toString('latin1', at + 124, at + 135), 8);
    files.set(name, bytes.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}

function readBlob(files: Map<string, Buffer>, { digest, size }: { digest: string; size: number }): Buffer {
  const blob = files.get(`blobs/${digest.replace(':', '/')}`);
  assert(blob);
  assert.equal(blob.length, size);
  assert.equal(`sha256:${createHash('sha256').update(blob).digest('hex')}`, digest);
  return blob;
}

const spec: ImageSpec = {
  name: 'localhost/kubeling/test:1',
  architecture: 'arm64',
  files: [{ path: 'opt/app/run', kind: 'file', mode: 0o755, data: Buffer.from('#!') }],
  entrypoint: ['/opt/app/run'],
  command: ['-v'],
  env: { PATH: '/bin', A: 'b=c' },
  user: '1000',
  workingDir: '/opt',
};

describe('buildImage', () => {
  it('builds an OCI image layout with correct digests and sizes', () => {
    const files = filesOf(buildImage(spec));
    assert.deepEqual(JSON.parse(String(files.get('oci-layout'))), { imageLayoutVersion: '1.0.0' });
    const [descriptor] = JSON.parse(String(files.get('index.json'))).manifests;
    assert.deepEqual(descriptor.annotations, {
      'io.containerd.image.name': 'localhost/kubeling/test:1',
      'org.opencontainers.image.ref.name': '1',
    });
    const manifest = JSON.parse(String(readBlob(files, descriptor)));
    const config = JSON.parse(String(readBlob(files, manifest.config)));
    const layer = readBlob(files, manifest.layers[0]);
    assert.deepEqual(config.rootfs.diff_ids, [manifest.layers[0].digest]);
    assert.equal(config.architecture, 'arm64');
    assert.deepEqual(config.config, {
      User: '1000',
      Env: ['PATH=/bin', 'A=b=c'],
      Entrypoint: ['/opt/app/run'],
      Cmd: ['-v'],
      WorkingDir: '/opt',
    });
    assert.deepEqual([...filesOf(layer).keys()], ['opt/', 'opt/app/', 'opt/app/run']);
  });

  it('builds identical archives for the same spec', () => {
    assert.deepEqual(buildImage(spec), buildImage(structuredClone(spec)));
  });

  it('rejects image names that are not full references', () => {
    for (const name of [
      'busybox',
      'localhost/x',
      'Localhost/x:1',
      'localhost/x:',
      'localhost/X:1',
      'localhost//x:1',
    ]) {
      assert.throws(() => buildImage({ ...spec, name }), { code: 'CONTAINERD_IMAGE' }, name);
    }
    buildImage({ ...spec, name: 'registry.example:5000/a/b-c_d.e:v1.2-x' });
  });
});

describe('imageArchitecture', () => {
  it('supports the two architectures with a pause program', () => {
    assert.equal(imageArchitecture('x64'), 'amd64');
    assert.equal(imageArchitecture('arm64'), 'arm64');
    assert.throws(() => imageArchitecture('riscv64'), {
      code: 'CONTAINERD_IMAGE',
      message: /current value is riscv64/,
    });
  });
});

describe('pauseImage', () => {
  it('the content of the pause image changes only together with its tag', () => {
    const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex').slice(0, 16);
    assert.deepEqual(
      [digest(pauseImage('amd64')), digest(pauseImage('arm64'))],
      ['8270d3a6f83360cb', '20971a7d0672b5b3'],
    );
  });

  it('the program of the pause image has a few hundred bytes', () => {
    assert.equal(pauseProgram('amd64').length, 276);
    assert.equal(pauseProgram('arm64').length, 308);
  });
});

describe('busyboxImage', () => {
  it('links every other applet to the busybox program', () => {
    const archive = busyboxImage({
      architecture: 'amd64',
      program: pauseProgram('amd64'),
      applets: ['ls', 'busybox', 'sh', 'ls'],
    });
    const files = filesOf(archive);
    const index = JSON.parse(String(files.get('index.json')));
    const manifest = JSON.parse(String(readBlob(files, index.manifests[0])));
    const names = [...filesOf(readBlob(files, manifest.layers[0])).keys()];
    assert.deepEqual(
      names.filter((name) => name.startsWith('bin/')),
      ['bin/', 'bin/busybox', 'bin/ls', 'bin/sh'],
    );
    assert(names.includes('tmp/') && names.includes('etc/passwd') && names.includes('usr/bin/'));
  });

  it('rejects a program for another architecture, a dynamic program and a file that is not a program', () => {
    const applets: string[] = [];
    const foreign = () => busyboxImage({ architecture: 'arm64', program: pauseProgram('amd64'), applets });
    assert.throws(foreign, { code: 'CONTAINERD_IMAGE', message: /64-bit ELF program for arm64/ });
    const dynamic = Buffer.from(pauseProgram('amd64'));
    dynamic.writeUInt32LE(3, 64);
    assert.throws(() => busyboxImage({ architecture: 'amd64', program: dynamic, applets }), /busybox-static/);
    assert.throws(() => busyboxImage({ architecture: 'amd64', program: Buffer.from('#!/bin/sh'), applets }), {
      code: 'CONTAINERD_IMAGE',
    });
  });
});
