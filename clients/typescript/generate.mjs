// Writes the types of the wire: `src/wire.ts`, from the description of a sandbox's server, and `src/gateway-wire.ts`,
// from that of a gateway.
//
//     node generate.mjs [--check]
//
// With `--check` nothing is written, and the exit code is 1 if a file is not what would be written. The same
// descriptions always give the same files.

import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** Descriptions, whose they are, the files that are made from them, and the beginning of the paths that matter. */
const DESCRIPTIONS = [
    {
        whose: "a sandbox's server",
        openapi: "../../crates/sandbox/server/src/docs/openapi.json",
        target: "src/wire.ts",
        paths: "/",
    },
    {
        whose: "a gateway",
        openapi: "../../crates/agent/gateway/src/openapi.json",
        target: "src/gateway-wire.ts",
        paths: "/v1/",
    },
];
const WIDTH = 120;

const headOf = (whose) => `// The bodies of requests and answers, as ${whose} describes them.
//
// Made by \`generate.mjs\` from its openapi.json. Do not change it by hand.`;

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

/** The names of the schemas that a part of the description refers to. */
function* references(value) {
    if (typeof value !== "object" || value === null) return;
    const found = value.$ref;
    if (typeof found === "string" && found.startsWith("#/components/")) yield found.slice("#/components/".length);
    for (const each of Object.values(value)) yield* references(each);
}

/** The schemas of what is below some paths. All are used of a description whose paths all matter. */
function used(document, paths) {
    const { components } = document;
    const schemas = Object.entries(components.schemas);
    if (paths === "/") return schemas;
    const below = Object.entries(document.paths).filter(([path]) => path.startsWith(paths));
    const waiting = [...references(below)];
    const seen = new Set();
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
        if (seen.has(name)) continue;
        seen.add(name);
        const [kind, word] = name.split("/");
        waiting.push(...references(components[kind][word]));
    }
    return schemas.filter(([name]) => seen.has(`schemas/${name}`));
}

function written({ whose, openapi, paths }) {
    const parts = [headOf(whose)];
    const document = JSON.parse(readFileSync(pathOf(openapi), "utf8"));
    const schemas = used(document, paths).sort(([one], [other]) => (one < other ? -1 : 1));
    for (const [name, schema] of schemas) {
        if (schema.oneOf !== undefined) parts.push(...variants(name, schema));
        else if (isObject(schema)) parts.push(objectType(name, schema));
        else parts.push([...comment(schema), `export type ${name} = ${typeOf(schema)};`].join("\n"));
    }
    return `${parts.join("\n\n")}\n`;
}

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));

/** What a file has; nothing if it is not there. */
function readIfThere(path) {
    try {
        return readFileSync(path, "utf8");
    } catch (error) {
        if (error.code !== "ENOENT") throw error;
        return "";
    }
}

function main(words) {
    const isCheck = words.includes("--check");
    if (words.length > (isCheck ? 1 : 0)) {
        process.stderr.write("usage: node generate.mjs [--check]\n");
        return 2;
    }
    let code = 0;
    for (const description of DESCRIPTIONS) {
        const { openapi, target } = description;
        const text = written(description);
        if (!isCheck) {
            writeFileSync(pathOf(target), text);
        } else if (readIfThere(pathOf(target)) !== text) {
            process.stderr.write(
                `${basename(target)} is not what ${openapi} says; run clients/typescript/generate.mjs\n`,
            );
            code = 1;
        }
    }
    return code;
}

process.exitCode = main(process.argv.slice(2));
