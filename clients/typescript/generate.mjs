// Writes the types of the wire: `src/wire.ts`, from the description of a sandbox's server.
//
//     node generate.mjs [--check] [OPENAPI]    default: the description in this repository
//
// With `--check` nothing is written, and the exit code is 1 if the file is not what would be written. The same
// description always gives the same file.

import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const OPENAPI = fileURLToPath(new URL("../../crates/sandbox/server/src/docs/openapi.json", import.meta.url));
const TARGET = fileURLToPath(new URL("src/wire.ts", import.meta.url));
const WIDTH = 120;

const HEAD = `// The bodies of requests and answers, as a sandbox's server describes them.
//
// Made by \`generate.mjs\` from the server's openapi.json. Do not change it by hand.
`;

const SIMPLE = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

const nameOf = (reference) => reference.slice(reference.lastIndexOf("/") + 1);

const several = (types) => [...new Set(types)].join(" | ");

/** The type of a value as TypeScript writes it. */
function typeOf(schema) {
    if (schema.$ref !== undefined) return nameOf(schema.$ref);
    if (schema.enum !== undefined) return several(schema.enum.map((value) => JSON.stringify(value)));
    if (schema.oneOf !== undefined) return several(schema.oneOf.map(typeOf));
    if (Array.isArray(schema.type)) return several(schema.type.map((type) => typeOf({ ...schema, type })));
    if (schema.type === "array") {
        const item = typeOf(schema.items);
        return /^\w+$/.test(item) ? `${item}[]` : `(${item})[]`;
    }
    if (schema.type === "object") {
        const values = schema.additionalProperties;
        return `Record<string, ${typeof values === "object" ? typeOf(values) : "unknown"}>`;
    }
    const simple = SIMPLE[schema.type];
    if (simple === undefined) throw new Error(`no type is known for ${JSON.stringify(schema)}`);
    return simple;
}

/** A description as a comment, or nothing. */
function comment(schema, indent = "") {
    const words = (schema.description ?? "").replaceAll("*/", "* /").split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    const lines = [""];
    for (const word of words) {
        const last = lines[lines.length - 1];
        const longer = last === "" ? word : `${last} ${word}`;
        if (last !== "" && longer.length > WIDTH - 7 - indent.length) lines.push(word);
        else lines[lines.length - 1] = longer;
    }
    if (lines.length === 1) return [`${indent}/** ${lines[0]} */`];
    return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`), `${indent} */`];
}

const isObject = (schema) => schema.allOf !== undefined || schema.properties !== undefined || schema.type === "object";

/** An interface of an object. */
function objectType(name, schema) {
    let properties = schema.properties ?? {};
    const needed = new Set(schema.required ?? []);
    const bases = [];
    for (const part of schema.allOf ?? []) {
        if (part.$ref !== undefined) bases.push(nameOf(part.$ref));
        properties = { ...properties, ...part.properties };
        for (const member of part.required ?? []) needed.add(member);
    }
    const ending = bases.length > 0 ? ` extends ${bases.join(", ")}` : "";
    const members = Object.entries(properties).flatMap(([member, value]) => {
        const key = /^[A-Za-z_$][\w$]*$/.test(member) ? member : JSON.stringify(member);
        return [...comment(value, "    "), `    ${key}${needed.has(member) ? "" : "?"}: ${typeOf(value)};`];
    });
    return [...comment(schema), `export interface ${name}${ending} {`, ...members, "}"].join("\n");
}

/** One of several objects, each an interface of its own. */
function variants(name, schema) {
    const names = schema.oneOf.map((_, index) => `${name}${index + 1}`);
    const types = schema.oneOf.map((variant, index) => {
        if (!isObject(variant)) throw new Error(`${name} is one of several, which are not all objects`);
        return objectType(names[index], variant);
    });
    return [
        ...types,
        [...comment(schema), `export type ${name} =`, names.map((each) => `    | ${each}`).join("\n") + ";"].join("\n"),
    ];
}

function written(document) {
    const parts = [HEAD.trimEnd()];
    const schemas = Object.entries(document.components.schemas).sort(([one], [other]) => (one < other ? -1 : 1));
    for (const [name, schema] of schemas) {
        if (schema.oneOf !== undefined) parts.push(...variants(name, schema));
        else if (isObject(schema)) parts.push(objectType(name, schema));
        else parts.push([...comment(schema), `export type ${name} = ${typeOf(schema)};`].join("\n"));
    }
    return `${parts.join("\n\n")}\n`;
}

function main(words) {
    const isCheck = words.includes("--check");
    const files = words.filter((word) => word !== "--check");
    if (files.length > 1 || files[0]?.startsWith("-")) {
        process.stderr.write("usage: node generate.mjs [--check] [OPENAPI]\n");
        return 2;
    }
    const openapi = files[0] ?? OPENAPI;
    const text = written(JSON.parse(readFileSync(openapi, "utf8")));
    if (!isCheck) {
        writeFileSync(TARGET, text);
        return 0;
    }
    let found = "";
    try {
        found = readFileSync(TARGET, "utf8");
    } catch (error) {
        if (error.code !== "ENOENT") throw error;
    }
    if (found === text) return 0;
    process.stderr.write(
        `${basename(TARGET)} is not what ${basename(openapi)} says; run clients/typescript/generate.mjs\n`,
    );
    return 1;
}

process.exitCode = main(process.argv.slice(2));
