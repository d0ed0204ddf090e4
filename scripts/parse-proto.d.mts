export interface ProtoField {
  readonly name: string;
  readonly number: number;
  readonly label: 'single' | 'optional' | 'repeated' | 'map';
  readonly type: string;
  readonly key: string | undefined;
  /** What stands in brackets behind it, such as [deprecated = true]. */
  readonly options: Readonly<Record<string, string>>;
}

export interface ProtoMessage {
  readonly name: string;
  readonly fields: readonly ProtoField[];
}

export interface ProtoEnum {
  readonly name: string;
  readonly values: readonly { readonly name: string; readonly number: number }[];
}

export interface ProtoMethod {
  readonly name: string;
  readonly request: string;
  readonly response: string;
  readonly serverStreaming: boolean;
}

export interface ProtoService {
  readonly name: string;
  readonly fullName: string;
  readonly methods: readonly ProtoMethod[];
}

export interface ProtoFile {
  readonly package: string;
  readonly messages: readonly ProtoMessage[];
  readonly enums: readonly ProtoEnum[];
  readonly services: readonly ProtoService[];
}

/** Throws an error that names the file and the place when the text is not what we understand. */
export function parseProto(fileName: string, text: string): ProtoFile;
