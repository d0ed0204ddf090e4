import { KubelingError } from '../../../lib/index.ts';
import { WireReader, wireType } from '../../../protocols/protobuf/index.ts';

/** What stands around every object of Kubernetes in protobuf. */
export interface ProtobufEnvelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly contentType: string;
  readonly raw: Uint8Array;
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/** Throws an error of the code PROTOBUF_MALFORMED for anything that is none. */
export function readEnvelope(bytes: Buffer): ProtobufEnvelope {
  if (!bytes.subarray(0, magic.length).equals(magic))
    throw new KubelingError(
      'PROTOBUF_MALFORMED',
      'Cannot read a protobuf object as its first bytes must be k8s',
    );
  const envelope = { apiVersion: '', kind: '', contentType: '', raw: Buffer.alloc(0) as Uint8Array };
  const reader = new WireReader(bytes.subarray(magic.length));
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === tagOf(1)) Object.assign(envelope, readType(reader));
    else if (tag === tagOf(2)) envelope.raw = reader.bytes();
    else if (tag === tagOf(4)) envelope.contentType = reader.string();
    else reader.skip(tag & 7);
  }
  return envelope;
}

function readType(reader: WireReader): { apiVersion: string; kind: string } {
  const type = { apiVersion: '', kind: '' };
  const outer = reader.enter();
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === tagOf(1)) type.apiVersion = reader.string();
    else if (tag === tagOf(2)) type.kind = reader.string();
    else reader.skip(tag & 7);
  }
  reader.leave(outer);
  return type;
}

function tagOf(number: number): number {
  return (number << 3) | wireType.bytes;
}
