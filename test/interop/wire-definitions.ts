import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { type ProtoEnum, type ProtoFile, type ProtoMessage, parseProto } from '../../scripts/parse-proto.mjs';

export const protoFolder = join(import.meta.dirname, '../../src/cri/proto');

/** Every .proto file of the CRI package, relative to its directory. */
export const protoFiles: readonly string[] = readdirSync(protoFolder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.proto'))
  .sort();

/** Loads the .proto files with protobufjs instead of kubeling's parser. */
export function loadWithProtoLoader(): PackageDefinition {
  return loadSync([...protoFiles], {
    includeDirs: [protoFolder],
    longs: String,
    enums: String,
    defaults: true,
    arrays: true,
    objects: true,
  });
}

export type ProtoLoaderMessage = MessageTypeDefinition<object, object>;

export function protoLoaderMessage(definitions: PackageDefinition, fullName: string): ProtoLoaderMessage {
  const found = definitions[fullName];
  if (found === undefined || !('format' in found) || !('serialize' in found)) {
    throw new Error(`There is no message ${fullName}`);
  }
  return found as ProtoLoaderMessage;
}

/** The protobuf definitions below a directory, parsed by kubeling and merged. */
export function parseOwn(matching: RegExp): {
  readonly files: readonly ProtoFile[];
  readonly messages: ReadonlyMap<string, ProtoMessage>;
  readonly enums: ReadonlyMap<string, ProtoEnum>;
} {
  const files = protoFiles
    .filter((name) => matching.test(name))
    .map((name) => parseProto(name, readFileSync(join(protoFolder, name), 'utf8')));
  return {
    files,
    messages: new Map(files.flatMap((file) => file.messages.map((message) => [message.name, message]))),
    enums: new Map(files.flatMap((file) => file.enums.map((definition) => [definition.name, definition]))),
  };
}
